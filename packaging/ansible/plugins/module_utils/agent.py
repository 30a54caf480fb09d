# Copyright: gdr-agent maintainers
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs the installed gdr-agent and says what its answers mean."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json

# The agent's exit codes are an interface: none changes its meaning.
MEANING = {
    1: "an internal error, or the machine failed",
    2: "the command line was not understood",
    3: "changes are pending, or the node has drifted",
    4: "the policy is not valid",
    5: "applying failed, and everything was undone",
    6: "verification failed; rolled back or rolling back",
    7: "a person has to decide",
    8: "a reboot is outstanding",
    9: "refused as unsafe",
}

# The state is the outcome, and nothing follows by itself.
FINAL = ("IDLE", "COMMITTED", "ROLLED_BACK", "QUARANTINED")

OPTIONS = dict(
    root=dict(type="path", default="/"),
    executable=dict(type="path"),
    timeout=dict(type="int", default=1800),
)


class Answer(object):
    """What one run of the agent said: its exit code, its JSON object (or none), and its words."""

    def __init__(self, verb, exit_code, data, text):
        self.verb = verb
        self.exit_code = exit_code
        self.data = data
        self.text = text

    def get(self, key, default=None):
        value = self.data.get(key)
        return default if value is None else value

    def findings(self):
        """What keeps this from being fine, as `{id, text, fix}`."""
        found = []
        error = self.get("error")
        if error:
            found.append(finding(error.get("kind"), error.get("message"), error.get("help")))
        for refusal in self.get("refusals", []):
            found.append(finding(refusal.get("id"), refusal.get("message"), refusal.get("fix")))
        found.extend(unmet_checks(self))
        status = self.data if self.verb == "status" else self.get("status", {})
        found.extend(status_findings(status))
        return found

    def message(self):
        """Why it failed and what to do, for people. Never the exit code alone."""
        found = self.findings()
        if found:
            return "\n".join(say(one) for one in found)
        meaning = MEANING.get(self.exit_code, "exit code %s" % self.exit_code)
        if self.exit_code < 0:
            meaning = "it was ended by signal %d" % -self.exit_code
        return "gdr-agent %s: %s%s" % (self.verb, meaning, ": " + self.text if self.text else "")


def finding(name, text, fix=None):
    return dict(id=name or "unknown", text=(text or "").strip(), fix=fix)


def say(one):
    """A finding as a line: what is wrong, then what to do."""
    text = "%s: %s" % (one["id"], one["text"])
    return "%s\n  to do: %s" % (text, one["fix"]) if one["fix"] else text


def unmet_checks(answer):
    """The required checks that are failed or unknown: unknown is not fine."""
    found = []
    for check in answer.get("checks", []):
        if check.get("outcome") == "met" or check.get("severity") != "required":
            continue
        words = [check.get("outcome"), check.get("subject")] + list(check.get("evidence") or [])
        found.append(finding(check.get("id"), "; ".join(w for w in words if w), check.get("fix")))
    return found


def status_findings(status):
    """What a status has against its transaction: why it went back, and what was left alone."""
    found = []
    failure = status.get("failure")
    # Somebody who asked for a rollback has got what they wanted.
    if failure and failure.get("kind") != "asked":
        found.append(finding(failure.get("kind"), failure.get("text"), status.get("next")))
        for line in status.get("unmet") or []:
            name, sep, rest = line.partition(" ")
            found.append(finding(name.rstrip(":"), rest if sep else line))
    for line in status.get("conflicts") or []:
        found.append(finding("conflict", line, "look at the file: somebody else has changed it, and it was left alone"))
    return found


class Agent(object):
    """The agent on this node."""

    def __init__(self, module):
        self.module = module
        self.limit = module.params["timeout"]
        self.program = module.params.get("executable") or module.get_bin_path("gdr-agent")

    def installed(self):
        if not self.program:
            return False
        return self.module.get_bin_path(self.program) is not None

    def require(self):
        if not self.installed():
            self.module.fail_json(
                msg="gdr-agent is not installed here (%s is not there): install its package first, for instance with "
                "the role gdr_agent.gdr_agent.gdr_agent" % (self.program or "gdr-agent in the usual places")
            )

    def call(self, verb, *args):
        """Runs `gdr-agent VERB`, and fails the task if that gives no answer."""
        command = [self.program, "--format", "json", "--root", self.module.params["root"]]
        if self.module.params.get("policy"):
            command += ["--policy", self.module.params["policy"]]
        command += [verb] + list(args)
        timer = self.module.get_bin_path("timeout", required=True)
        code, out, err = self.module.run_command(
            [timer, "--kill-after=10", str(self.limit)] + command,
            environ_update=dict(LC_ALL="C.UTF-8", NO_COLOR="1"),
        )
        # 124 and 137 are the timer's; the agent has neither.
        if code in (124, 137):
            self.module.fail_json(
                msg="gdr-agent %s had not ended after %d s and was stopped. What it had begun is in its journal: "
                "`gdr-agent status` says where it stands, and running this again goes on" % (verb, self.limit),
                exit_code=code,
            )
        try:
            data = json.loads(out)
        except ValueError:
            data = {}
        answer = Answer(verb, code, data if isinstance(data, dict) else {}, (err or out).strip())
        if not answer.get("schema"):
            self.fail(answer)
        return answer

    def fail(self, answer, **more):
        more.setdefault("changed", bool(answer.get("changed", False)))
        more.setdefault("findings", answer.findings())
        self.module.fail_json(msg=answer.message(), exit_code=answer.exit_code, **more)
