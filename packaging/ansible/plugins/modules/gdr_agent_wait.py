#!/usr/bin/python
# Copyright: gdr-agent maintainers
# SPDX-License-Identifier: Apache-2.0 OR MIT

from __future__ import absolute_import, division, print_function

__metaclass__ = type

DOCUMENTATION = r"""
module: gdr_agent_wait
short_description: Wait until a node has decided about its GPUDirect RDMA policy
description:
  - Asks the node where its transaction stands until it is committed, rolled back or quarantined, or until nothing happens
    any more without a person. The node reboots meanwhile, so losing the connection is expected.
  - Fails unless the policy is committed, with what the agent found.
  - Reboots nothing and asks for no reboot.
extends_documentation_fragment:
  - gdr_agent.gdr_agent.agent
options:
  timeout:
    description:
      - How many seconds to wait for the outcome. A reboot may be waited for until a window opens or a slot is free.
    type: int
    default: 3600
  delay:
    description:
      - How many seconds lie between two questions.
    type: int
    default: 10
attributes:
  check_mode:
    support: full
    details:
      - Skipped, since nothing is under way.
  diff_mode:
    support: none
seealso:
  - module: gdr_agent.gdr_agent.gdr_agent
  - module: gdr_agent.gdr_agent.gdr_agent_info
"""

EXAMPLES = r"""
- name: Apply, and let the policy's coordinator reboot the node
  gdr_agent.gdr_agent.gdr_agent:
    reboot: true
  register: applied
  ignore_unreachable: true

- name: Wait for how it ends
  gdr_agent.gdr_agent.gdr_agent_wait:
    timeout: 7200
  when: applied is unreachable or applied.reboot_required
"""

RETURN = r"""
state:
  description: Where the transaction stood last.
  returned: when the node could be asked
  type: str
  sample: COMMITTED
outcome:
  description: How it ended.
  returned: when it ended
  type: str
  sample: committed
findings:
  description: What is wrong, each with C(id), C(text) and C(fix).
  returned: when the node could be asked
  type: list
  elements: dict
lost:
  description: How often the node could not be reached.
  returned: always
  type: int
elapsed:
  description: The seconds that this took.
  returned: always
  type: int
"""

# This is only its documentation. plugins/action/gdr_agent_wait.py does it, on the controller.
