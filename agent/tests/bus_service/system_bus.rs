//! A bus with the rules of a system bus, on which a call starts the service.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use gdr_tests::node::{self, NodeSpec};

pub const NAME: &str = "org.gdr_agent.Agent1";
pub const PATH: &str = "/org/gdr_agent/Agent1";

/// What every system bus has: nobody owns a name and nobody calls a method unless a file says so.
const RULES: &str = r#"
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
  </policy>"#;

/// For the stand-ins; the real ones bring files like it.
const OTHERS: &str = r#"<busconfig>
  <policy user="root">
    <allow own="org.freedesktop.PolicyKit1"/>
    <allow own="org.freedesktop.systemd1"/>
    <allow send_destination="org.freedesktop.PolicyKit1"/>
    <allow send_destination="org.freedesktop.systemd1"/>
  </policy>
</busconfig>"#;

pub fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../packaging/dbus")
        .join(name)
}

pub fn binary() -> PathBuf {
    std::env::var_os("GDR_AGENT_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_gdr-agent").into(), PathBuf::from)
}

pub struct SystemBus {
    child: Child,
    pub address: String,
    dir: tempfile::TempDir,
}

impl SystemBus {
    /// A node with a policy in force, and a bus that starts the service for it. None, with a word about it, where that
    /// cannot be.
    pub fn start(idle: u64) -> Option<Self> {
        let id = Command::new("id").arg("-u").output().unwrap();
        if id.stdout != b"0\n" {
            assert!(
                std::env::var_os("CI").is_none(),
                "in CI this has to run as root"
            );
            println!("SKIPPED: only root may own the name");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        let spec = NodeSpec {
            policy: Some(
                "version = 1\n[devices]\ngpu = [\"10de:*/0302\"]\nnic = [\"15b3:*/0207\"]\n\
                 [kernel]\niommu = \"keep\"\n[peermem]\nload = false\n[acs]\nscope = \"paths\"\n\
                 [verify]\nrequire = [\"acs\"]\n"
                    .into(),
            ),
            ..NodeSpec::default()
        };
        node::create(&at("node"), &spec).unwrap();
        for name in ["services", "system.d"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let address = format!("unix:path={}", at("bus").display());
        std::fs::copy(
            packaging("org.gdr_agent.Agent1.conf"),
            at("system.d/agent.conf"),
        )
        .unwrap();
        std::fs::write(at("system.d/others.conf"), OTHERS).unwrap();
        // As it ships but for systemd, whose place the bus takes here.
        let shipped = std::fs::read_to_string(packaging("org.gdr_agent.Agent1.service")).unwrap();
        assert!(shipped.contains("\nSystemdService=gdr-agent-bus.service\n"));
        let exec = format!(
            "Exec=/usr/bin/env DBUS_SYSTEM_BUS_ADDRESS={address} {} --root {} boot bus --idle {idle}",
            binary().display(),
            at("node").display()
        );
        let service = shipped
            .replace("Exec=/bin/false", &exec)
            .replace("SystemdService=gdr-agent-bus.service\n", "");
        std::fs::write(at("services/agent.service"), service).unwrap();
        let config = format!(
            "<busconfig>\n  <type>system</type>\n  <listen>{address}</listen>\n  \
             <servicedir>{}</servicedir>{RULES}\n  <includedir>{}</includedir>\n</busconfig>",
            at("services").display(),
            at("system.d").display()
        );
        std::fs::write(at("bus.conf"), config).unwrap();
        let started = Command::new("dbus-daemon")
            .args(["--nofork", "--nopidfile", "--nosyslog", "--print-address=1"])
            .arg(format!("--config-file={}", at("bus.conf").display()))
            .stdout(Stdio::piped())
            .spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(e) => {
                assert!(std::env::var_os("CI").is_none(), "dbus-daemon: {e}");
                println!("SKIPPED: dbus-daemon cannot be started ({e}); install the package dbus");
                return None;
            }
        };
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let bus = Self {
            child,
            address,
            dir,
        };
        bus.agent(&["apply"]);
        Some(bus)
    }

    pub fn node(&self) -> PathBuf {
        self.dir.path().join("node")
    }

    /// The agent on that node, as root.
    pub fn run(&self, args: &[&str]) -> Output {
        Command::new(binary())
            .arg("--root")
            .arg(self.node())
            .args(args)
            .output()
            .unwrap()
    }

    /// The same, and it has to work.
    pub fn agent(&self, args: &[&str]) -> Vec<u8> {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        output.stdout
    }

    /// A real client, as a user with nothing: `busctl call ...`.
    pub fn nobody(&self, args: &[&str]) -> Output {
        Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups", "busctl"])
            .arg(format!("--address={}", self.address))
            .args(["--timeout=30", "--json=short"])
            .args(args)
            .output()
            .unwrap()
    }

    /// `Reconcile()`, by a client that shows the whole error: sd-bus puts words of its own in the place of some.
    pub fn reconcile(&self) -> Result<(), String> {
        let output = Command::new("setpriv")
            .args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "dbus-send",
            ])
            .arg(format!("--bus={}", self.address))
            .args(["--print-reply", "--reply-timeout=60000"])
            .arg(format!("--dest={NAME}"))
            .args([PATH, &format!("{NAME}.Reconcile")])
            .output()
            .unwrap();
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8(output.stderr).unwrap()),
        }
    }

    /// The same, and it has to work.
    pub fn asked(&self, args: &[&str]) -> serde_json::Value {
        let output = self.nobody(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        serde_json::from_slice(&output.stdout).unwrap_or(serde_json::Value::Null)
    }

    pub fn property(&self, name: &str) -> String {
        let value = self.asked(&["get-property", NAME, PATH, NAME, name]);
        assert_eq!(value["type"], "s", "{name}");
        value["data"].as_str().unwrap().to_owned()
    }

    /// What the bus or the service says against a call.
    pub fn refused(&self, args: &[&str]) -> String {
        let output = self.nobody(args);
        assert!(!output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    pub fn has_owner(&self) -> bool {
        let bus = "org.freedesktop.DBus";
        let answer = self.asked(&["call", bus, "/", bus, "NameHasOwner", "s", NAME]);
        answer["data"][0].as_bool().unwrap()
    }

    pub fn wait_for_its_end(&self) -> bool {
        let end = Instant::now() + Duration::from_secs(60);
        while self.has_owner() {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        true
    }
}

impl Drop for SystemBus {
    fn drop(&mut self) {
        // The service goes with its bus.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
