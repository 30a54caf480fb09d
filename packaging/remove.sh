# shellcheck shell=sh
# The package goes. Nothing may stay armed or half done, and the program must be at hand for what stays in force.
# A part of the .deb's prerm and the .rpm's %preun; $root is empty, or the directory that is worked on.
state=$root/var/lib/gdr-agent

if [ -z "$root" ] && [ -d /run/systemd/system ]; then
  # Otherwise it may begin something between here and the removal of the program, by itself or asked on the bus.
  systemctl stop gdr-agent-reconcile.timer gdr-agent-reconcile.service gdr-agent-ask.timer gdr-agent-ask.service gdr-agent-bus.service || true
fi

if ! "$root/usr/bin/gdr-agent" --root "${root:-/}" boot uninstall; then
  echo 'gdr-agent: what is under way could not be undone, so the package stays. It says why above; then try again.' >&2
  exit 1
fi

if [ -z "$root" ] && [ -d /run/systemd/system ]; then
  # Stopping it arms nothing: the program looks whether the machine is going down for a granted reboot.
  # gdr-agent-peermem.service is not stopped: that would unload a module that jobs are about to use.
  systemctl stop gdr-agent-arm.service || true
fi

if [ -e "$state/committed.json" ]; then
  # Whole or not at all, as somebody will run it.
  mkdir -p "$state/uninstall"
  chmod 0700 "$state/uninstall"
  cp "$root/usr/bin/gdr-agent" "$state/uninstall/.new"
  chmod 0700 "$state/uninstall/.new"
  sync "$state/uninstall/.new" 2> /dev/null || sync
  mv "$state/uninstall/.new" "$state/uninstall/gdr-agent"
  cat >&2 << 'TEXT'
gdr-agent: a policy is in force and stays so: its kernel arguments are what this node boots with. ACS redirection is
not cleared at boot any more. The program is kept in /var/lib/gdr-agent/uninstall, to take the policy back:
    /var/lib/gdr-agent/uninstall/gdr-agent rollback
TEXT
fi
