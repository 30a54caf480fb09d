# Copyright: gdr-agent maintainers
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What the modules' documentation has in common."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type


class ModuleDocFragment(object):
    # Which node, and which program on it.
    DOCUMENTATION = r"""
author:
  - gdr-agent maintainers (@gdr-agent)
options:
  root:
    description:
      - The root directory of the node; another one for an image that is being made.
    type: path
    default: /
  executable:
    description:
      - The program on the node, where it is not in one of the usual directories.
    type: path
attributes:
  check_mode:
    description: Can run in check mode and return changed status prediction without modifying target.
  diff_mode:
    description: Will return details on what has changed (or possibly needs changing in check mode), when in diff mode.
"""

    # For a module that runs the agent once or twice.
    RUN = r"""
options:
  timeout:
    description:
      - How many seconds one run of the agent may take. Applying a policy may install a package.
    type: int
    default: 1800
"""
