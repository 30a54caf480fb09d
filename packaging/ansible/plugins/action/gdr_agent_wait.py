# Copyright: gdr-agent maintainers
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Waits on the controller, since the node goes away meanwhile."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import time

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ansible_collections.gdr_agent.gdr_agent.plugins.module_utils.agent import say

display = Display()

OPTIONS = dict(
    root=dict(type="path", default="/"),
    executable=dict(type="path"),
    timeout=dict(type="int", default=3600),
    delay=dict(type="int", default=10),
)


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp=None, task_vars=None):
        result = super(ActionModule, self).run(tmp, task_vars)
        options = self.validate_argument_spec(OPTIONS)[1]
        if self._task.check_mode:
            result.update(skipped=True, msg="nothing is under way in check mode")
            return result
        result.update(self.wait(options, task_vars or {}))
        self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def wait(self, options, task_vars):
        started = time.monotonic()
        node, reason, lost = {}, "", 0
        while True:
            try:
                node = self.ask(options, task_vars)
                reason = node.get("msg", "") if node.get("failed") else ""
            except AnsibleConnectionFailure as error:
                # It goes down, or comes up: nothing is known until it answers again.
                node, reason = {}, str(error)
            if reason:
                lost += 1
                display.vv("gdr_agent_wait: no answer yet: %s" % reason)
            elapsed = int(time.monotonic() - started)
            common = dict(changed=False, lost=lost, elapsed=elapsed)
            if not reason:
                common.update((key, node.get(key)) for key in ("state", "outcome", "findings", "status"))
                if not node.get("installed"):
                    return dict(common, failed=True, msg="gdr-agent is not installed on the node: there is nothing to wait for")
                if node.get("settled"):
                    return dict(common, **verdict(node))
            if elapsed >= options["timeout"]:
                return dict(common, failed=True, msg=too_long(node, reason, elapsed))
            time.sleep(min(options["delay"], max(options["timeout"] - elapsed, 0)))

    def ask(self, options, task_vars):
        # What was open before the reboot leads nowhere after it.
        try:
            self._connection.reset()
        except (AttributeError, NotImplementedError):
            pass
        args = dict((key, options[key]) for key in ("root", "executable") if options[key] is not None)
        # A node that hangs on its way down must not hold this up for long.
        args["timeout"] = 60
        return self._execute_module(
            module_name="gdr_agent.gdr_agent.gdr_agent_info", module_args=args, task_vars=task_vars
        )


def verdict(node):
    """How a transaction ended. Everything but the commit is a failure, with what the agent found."""
    if node.get("state") == "COMMITTED":
        return {}
    found = "\n".join(say(one) for one in node.get("findings") or [])
    words = {
        "ROLLED_BACK": "the policy was rolled back and is not in force",
        "QUARANTINED": "the policy failed its trial; the node is as it was before, and does not try this policy again by itself",
        "IDLE": "no policy was applied here",
    }
    said = words.get(node.get("state"), "nothing happens by itself any more")
    text = "%s (state %s). Next: %s" % (said, node.get("state"), node.get("next"))
    return dict(failed=True, msg="%s\n%s" % (found, text) if found else text)


def too_long(node, reason, elapsed):
    if reason:
        return "the node could not be asked how it ended, after %d s: %s" % (elapsed, reason)
    waiting = (node.get("status") or {}).get("waiting") or {}
    why = "; it waits for the %s: %s" % (waiting["wants"], waiting["text"]) if waiting else ""
    return "no outcome after %d s: state %s%s. Next: %s. The node goes on by itself; `gdr-agent status` says how far it is" % (
        elapsed,
        node.get("state"),
        why,
        node.get("next"),
    )
