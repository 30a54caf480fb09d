#!/usr/bin/python
# Copyright: gdr-agent maintainers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: gdr_agent_info
short_description: Where the GPUDirect RDMA policy of a node stands
description:
  - Runs C(gdr-agent status), and on demand C(gdr-agent verify). Changes nothing, and does not fail because of what it finds.
extends_documentation_fragment:
  - gdr_agent.gdr_agent.agent
  - gdr_agent.gdr_agent.agent.run
options:
  checks:
    description:
      - Ask the policy's checks, too. Not done while a trial runs, which is judged by the node itself.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
seealso:
  - module: gdr_agent.gdr_agent.gdr_agent
"""

EXAMPLES = r"""
- name: Ask every node
  gdr_agent.gdr_agent.gdr_agent_info:
    checks: true
  register: node

- name: Say what is wrong
  ansible.builtin.debug:
    var: node.findings
"""

RETURN = r"""
installed:
  description: Whether the agent is there. The other values come only with it.
  returned: always
  type: bool
check_mode:
  description: Whether this task ran in check mode, which a role cannot see otherwise where only a part of a play does.
  returned: always
  type: bool
state:
  description: Where the last transaction stands.
  returned: when installed
  type: str
  sample: COMMITTED
outcome:
  description: How it ended, V(committed), V(rolled-back) or V(quarantined); null while it runs or if there is none.
  returned: when installed
  type: str
next:
  description: What happens next, for people.
  returned: when installed
  type: str
settled:
  description: Whether nothing happens any more by itself. Also true where a person has to decide.
  returned: when installed
  type: bool
status:
  description: All that C(gdr-agent status) says.
  returned: when installed
  type: dict
verdict:
  description: V(met), V(failed) or V(unknown).
  returned: with O(checks), unless a trial runs
  type: str
findings:
  description: What is wrong, each with C(id), C(text) and C(fix).
  returned: always
  type: list
  elements: dict
exit_code:
  description: The exit code of C(gdr-agent status).
  returned: when installed
  type: int
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gdr_agent.gdr_agent.plugins.module_utils.agent import FINAL, OPTIONS, Agent

PERSON = 7


def main():
    module = AnsibleModule(
        argument_spec=dict(checks=dict(type="bool", default=False), **OPTIONS),
        supports_check_mode=True,
    )
    agent = Agent(module)
    if not agent.installed():
        module.exit_json(changed=False, installed=False, check_mode=module.check_mode, findings=[])
    status = agent.call("status")
    if status.get("error"):
        agent.fail(status)
    result = dict(
        changed=False,
        installed=True,
        check_mode=module.check_mode,
        state=status.get("state"),
        outcome=status.get("outcome"),
        next=status.get("next"),
        # A transaction that nobody may reboot for stands still as well.
        settled=status.get("state") in FINAL or status.exit_code == PERSON or stands(status),
        status=status.data,
        findings=status.findings(),
        exit_code=status.exit_code,
    )
    # In a trial `verify` commits or rolls back.
    if module.params["checks"] and status.get("state") != "TRIAL_BOOTED":
        verify = agent.call("verify")
        result["verdict"] = verify.get("verdict")
        result["findings"] += verify.findings()
    module.exit_json(**result)


def stands(status):
    budget = status.get("reboots", {})
    return status.get("state") == "STAGED" and not budget.get("allowed", False)


if __name__ == "__main__":
    main()
