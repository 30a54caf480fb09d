# Copyright: gdr-agent maintainers
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The local connection, which is lost while a file is there: a node that reboots."""

from __future__ import annotations

import os

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = """
name: flaky
short_description: the local connection, lost while a file is there
description: For tests of what happens while a node reboots.
author: gdr-agent maintainers (@gdr-agent)
extends_documentation_fragment:
  - connection_pipelining
options:
  down:
    description: The connection is lost while this file is there.
    vars:
      - name: flaky_down
"""


class Connection(Local):
    transport = "flaky"

    def exec_command(self, *args, **kwargs):
        if os.path.exists(self.get_option("down")):
            raise AnsibleConnectionFailure("the node is down")
        return super().exec_command(*args, **kwargs)
