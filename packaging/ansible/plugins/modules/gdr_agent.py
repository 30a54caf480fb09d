#!/usr/bin/python
# Copyright: gdr-agent maintainers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: gdr_agent
short_description: Apply the GPUDirect RDMA policy of a node
description:
  - Runs the installed C(gdr-agent). What the policy asks for is staged, and where it needs a new kernel command line, the
    machine tries that once before it becomes the default.
  - The node is never rebooted by this module. It is asked for, through the coordinator that the policy names, and the
    module returns before the machine goes down. M(gdr_agent.gdr_agent.gdr_agent_wait) waits for how it ends.
  - A second run on a node where the policy is in force changes nothing.
extends_documentation_fragment:
  - gdr_agent.gdr_agent.agent
  - gdr_agent.gdr_agent.agent.run
options:
  policy:
    description:
      - A policy file outside of O(root), with its drop-ins beside it. Without it the node's own is taken,
        C(/etc/gdr-agent/policy.toml) and C(/etc/gdr-agent/policy.d/*.toml) below O(root).
    type: path
  bake:
    description:
      - This is an image. Nobody is asked for a reboot, and by policy its first boot is the trial.
    type: bool
    default: false
  reboot:
    description:
      - V(true) asks the policy's coordinator for the reboot, whatever C(reboot.allow) says. V(false) stages only.
      - Without it the policy decides.
    type: bool
  retry:
    description:
      - Try a policy again whose trial has failed.
    type: bool
    default: false
  verify:
    description:
      - Where nothing is outstanding after that, ask the policy's checks, and fail if a required one is not met.
      - Not done in check mode or with O(bake).
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    details:
      - Answered by C(gdr-agent plan).
  diff_mode:
    support: full
    details:
      - The agent's own unified diffs, one for each step; also of what is written only after the trial.
seealso:
  - module: gdr_agent.gdr_agent.gdr_agent_info
  - module: gdr_agent.gdr_agent.gdr_agent_wait
"""

EXAMPLES = r"""
- name: Apply the node's policy and let it ask for its reboot as the policy says
  gdr_agent.gdr_agent.gdr_agent:

- name: Ask for the reboot, which may take the connection along before the answer is here
  gdr_agent.gdr_agent.gdr_agent:
    reboot: true
  ignore_unreachable: true

- name: Stage only; somebody else reboots the node
  gdr_agent.gdr_agent.gdr_agent:
    reboot: false
  register: applied

- name: Make the first boot of an image the trial
  gdr_agent.gdr_agent.gdr_agent:
    root: /mnt/image
    bake: true
"""

RETURN = r"""
changed:
  description: Whether this run changed anything. Asking for a reboot counts.
  returned: always
  type: bool
reboot_required:
  description: Whether the policy is in force only after a reboot.
  returned: success
  type: bool
state:
  description: Where the transaction stands, in the agent's words.
  returned: success
  type: str
  sample: GRANTED
next:
  description: What happens next, for people.
  returned: success
  type: str
  sample: at the coming reboot GRUB is told to boot the new command line once
steps:
  description: What was done or, in check mode, would be.
  returned: success
  type: list
  elements: dict
notes:
  description: What a person should know.
  returned: success
  type: list
  elements: str
digest:
  description: The policy's digest.
  returned: success
  type: str
findings:
  description: What is wrong. Each has C(id), C(text) and C(fix), and the message of a failure is made of them.
  returned: always
  type: list
  elements: dict
  sample:
    - id: policy.quarantined
      text: this policy failed its trial
      fix: change the policy, or run `gdr-agent apply --retry`
exit_code:
  description: The agent's exit code. RV(ignore:exit_code=8) is success, with a reboot outstanding.
  returned: always
  type: int
verdict:
  description: V(met) if every required check is.
  returned: with O(verify), where nothing is outstanding
  type: str
  sample: met
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gdr_agent.gdr_agent.plugins.module_utils.agent import FINAL, OPTIONS, Agent

DONE = 0
PENDING = 3
OUTSTANDING = 8


def diffs(steps):
    """Ansible shows these as they are. Steps without a file have a headline of their own."""
    shown = []
    for step in steps:
        diff = step.get("diff")
        if not diff:
            continue
        head = "" if diff.startswith("--- ") else "# %s: %s\n" % (step["id"], step["summary"])
        shown.append(dict(prepared=head + diff.rstrip("\n") + "\n"))
    return shown


def plan(module, agent, before):
    answer = agent.call("plan")
    refusals = answer.get("refusals", [])
    tried_again = module.params["retry"] and refusals and all(r["id"] == "policy.quarantined" for r in refusals)
    if answer.exit_code not in (DONE, PENDING) and not tried_again:
        agent.fail(answer, changed=False)
    # This very policy is under way: applying it again only goes on.
    under_way = before.get("state") not in FINAL and before.get("digest") == answer.get("digest")
    result = outcome(answer, before)
    result["changed"] = not under_way and (bool(answer.get("changed")) or tried_again)
    result["reboot_required"] = under_way or bool(answer.get("reboot_required"))
    return result


def apply(module, agent, before):
    args = [name for name, wanted in (("--bake", "bake"), ("--retry", "retry")) if module.params[wanted]]
    if module.params["reboot"] is not None:
        args.append("--reboot" if module.params["reboot"] else "--no-reboot")
    answer = agent.call("apply", *args)
    after = answer.get("status") or before.data
    changed = bool(answer.get("changed")) or after.get("state") != before.get("state")
    if answer.exit_code not in (DONE, OUTSTANDING):
        agent.fail(answer, changed=changed, state=after.get("state"))
    result = outcome(answer, before)
    result["changed"] = changed
    return result


def outcome(answer, before):
    status = answer.get("status") or before.data
    return dict(
        reboot_required=bool(answer.get("reboot_required")),
        state=status.get("state"),
        next=status.get("next"),
        steps=answer.get("steps", []),
        notes=answer.get("notes", []),
        digest=answer.get("digest"),
        findings=[],
        exit_code=answer.exit_code,
    )


def verify(agent, result):
    answer = agent.call("verify")
    result.update(verdict=answer.get("verdict"), findings=answer.findings())
    if answer.exit_code != DONE:
        agent.fail(answer, **dict((key, value) for key, value in result.items() if key != "exit_code"))


def main():
    module = AnsibleModule(
        argument_spec=dict(
            policy=dict(type="path"),
            bake=dict(type="bool", default=False),
            reboot=dict(type="bool"),
            retry=dict(type="bool", default=False),
            verify=dict(type="bool", default=False),
            **OPTIONS
        ),
        supports_check_mode=True,
    )
    if module.params["bake"] and module.params["reboot"] is not None:
        module.fail_json(msg="bake and reboot exclude each other: an image is not rebooted by anybody")
    agent = Agent(module)
    agent.require()
    before = agent.call("status")
    if before.get("error"):
        agent.fail(before)
    result = (plan if module.check_mode else apply)(module, agent, before)
    if module._diff:
        result["diff"] = diffs(result["steps"])
    settled = result["exit_code"] == DONE and not module.check_mode and not module.params["bake"]
    if module.params["verify"] and settled:
        verify(agent, result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
