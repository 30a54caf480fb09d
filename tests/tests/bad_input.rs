//! Bad input: a clear error, the right exit code, and nothing changed.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use gdr_tests::node::NodeSpec;
use support::{Node, binary, fingerprint};

const POLICY: &str = "etc/gdr-agent/policy.toml";

/// Runs `apply`, expects an exit code and words in the error, and that nothing has changed.
fn refused(node: &Node, exit: i32, words: &[&str]) {
    let before = fingerprint(node.path());
    let output = node.run(&["apply", "--reboot"]);
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(exit), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is not in:\n{said}");
    }
    assert!(said.lines().count() <= 40, "more than a screen:\n{said}");
    assert!(
        !said.contains('\u{1b}'),
        "escape sequences in a pipe:\n{said:?}"
    );
    assert_eq!(fingerprint(node.path()), before, "something was changed");
}

#[test]
fn policies_that_cannot_be_read() {
    let node = Node::new(&NodeSpec {
        policy: None,
        ..NodeSpec::default()
    });
    refused(&node, 4, &["there is no policy at", "policy new"]);
    std::fs::create_dir_all(node.path().join("etc/gdr-agent")).unwrap();
    for (text, words) in [
        (&b""[..], &["version"][..]),
        (b"\x7fELF\x00\x01\x02", &["policy.toml"]),
        (
            b"version = 1\n[kernle]\niommu = \"off\"\n",
            &["policy.toml:2:", "kernle", "kernel"],
        ),
        (
            b"version = 1\n[kernel]\niomu = \"off\"\n",
            &["policy.toml:3:", "iomu", "iommu"],
        ),
        (b"version = 1\n[kernel]\niommu = 3\n", &["policy.toml:3:"]),
        (
            b"version = 1\n[kernel]\niommu = \"sideways\"\n",
            &["policy.toml:3:", "sideways", "passthrough"],
        ),
        (b"version = 1\n[kernel]\n[kernel]\n", &["policy.toml:3:"]),
        (
            b"version = 1\n[kernel]\nset = [\"a\\nb\"]\n",
            &["policy.toml:3:"],
        ),
        (
            b"version = 1\n[kernel]\nset = [\"init=/bin/sh\"]\n",
            &["policy.toml:3:", "init"],
        ),
        (
            b"version = 1\n[kernel]\nset = [\"x=$(reboot)\"]\n",
            &["policy.toml:3:"],
        ),
    ] {
        node.write(POLICY, text);
        refused(&node, 4, words);
    }
    let started = Instant::now();
    node.write(POLICY, &vec![b'#'; 10 << 20]);
    refused(&node, 4, &["policy.toml"]);
    assert!(started.elapsed().as_secs() < 10);
}

#[test]
fn all_errors_of_a_policy_come_at_once() {
    let node = Node::new(&NodeSpec::default());
    node.write(
        POLICY,
        b"version = 1\n[kernel]\niomu = \"off\"\n[acs]\nscope = \"path\"\n",
    );
    refused(&node, 4, &["policy.toml:3:", "policy.toml:5:", "paths"]);
}

#[test]
fn a_policy_that_others_can_change_is_refused_by_apply_and_a_warning_in_check() {
    let node = Node::new(&NodeSpec::default());
    let file = node.path().join(POLICY);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    refused(&node, 9, &["others may write it", "chmod"]);
    let check = node.json(&["policy", "check"], 0);
    assert!(
        check["files"][0]["warnings"][0]
            .as_str()
            .unwrap()
            .contains("others may write it")
    );
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    if !root("a policy that belongs to another user") {
        return;
    }
    chown(&file, Some(12345), None).unwrap();
    refused(&node, 9, &["belongs to user 12345"]);
    chown(&file, Some(0), None).unwrap();
    std::fs::set_permissions(
        file.parent().unwrap(),
        std::fs::Permissions::from_mode(0o777),
    )
    .unwrap();
    refused(&node, 9, &["writable by others"]);
}

#[test]
fn boot_configurations_in_which_nothing_can_be_tried() {
    let replace = |node: &Node, path: &str, from: &str, to: &str| {
        let text = String::from_utf8(node.read(path)).unwrap();
        assert!(text.contains(from), "{path} has no `{from}`");
        node.write(path, text.replace(from, to).as_bytes());
    };
    let node = Node::new(&NodeSpec::default());
    replace(
        &node,
        "etc/default/grub",
        "GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"",
        "GRUB_CMDLINE_LINUX_DEFAULT=\"$(cat /etc/extra)\"",
    );
    refused(&node, 9, &["boot.default-computed", "/etc/default/grub:"]);

    let node = Node::new(&NodeSpec::default());
    replace(&node, "boot/grub/grub.cfg", "custom.cfg", "other.cfg");
    refused(&node, 9, &["boot.no-hook", "41_custom"]);

    let node = Node::new(&NodeSpec::default());
    node.write("boot/grub/grub.cfg", b"menuentry 'x' {\n");
    refused(&node, 9, &["boot.menu-unreadable", "line"]);

    let node = Node::new(&NodeSpec::default());
    std::fs::remove_file(node.path().join("boot/grub/grub.cfg")).unwrap();
    refused(&node, 9, &["boot.no-menu", "update-grub"]);

    let node = Node::new(&NodeSpec::default());
    node.write("boot/grub/grubenv", b"");
    refused(&node, 9, &["boot.grubenv-damaged"]);
    std::fs::remove_file(node.path().join("boot/grub/grubenv")).unwrap();
    refused(&node, 9, &["boot.no-grubenv"]);

    let node = Node::new(&NodeSpec::default());
    std::fs::create_dir_all(node.path().join("etc/default/grub.d")).unwrap();
    node.write(
        "etc/default/grub.d/zz-late.cfg",
        b"GRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\n",
    );
    refused(&node, 9, &["boot.default-overridden", "99-gdr-agent.cfg"]);
    node.write(
        "etc/default/grub.d/zz-late.cfg",
        b"[ -f /nonexistent ] && true\nfalse\n",
    );
    refused(&node, 9, &["boot.default-aborts", "zz-late.cfg:2"]);
}

#[test]
fn a_menu_that_is_older_than_its_defaults_or_was_not_booted() {
    let node = Node::new(&NodeSpec::default());
    node.write(
        "etc/default/grub",
        b"GRUB_CMDLINE_LINUX_DEFAULT=\"quiet foo=bar\"\n",
    );
    refused(&node, 9, &["boot.stale-menu", "foo=bar"]);

    let node = Node::new(&NodeSpec::default());
    node.write(
        "proc/cmdline",
        b"BOOT_IMAGE=/boot/vmlinuz-6.1.0-37-amd64 root=/dev/sda1 ro\n",
    );
    refused(
        &node,
        9,
        &["boot.default-not-proven", "reboot into the default entry"],
    );
}

#[test]
fn other_boot_loaders_are_told_what_to_use() {
    let node = Node::new(&NodeSpec::default());
    std::fs::create_dir_all(node.path().join("ostree/repo")).unwrap();
    refused(&node, 9, &["boot.loader-unsupported", "rpm-ostree kargs"]);
}

#[test]
fn a_second_agent_is_told_who_is_at_work() {
    let node = Node::new(&NodeSpec::default());
    let dir = node.path().join("var/lib/gdr-agent");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("lock"), "pid 4711: apply\n").unwrap();
    let lock = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(dir.join("lock"))
        .unwrap();
    lock.lock().unwrap();
    refused(&node, 7, &["pid 4711: apply"]);
    drop(lock);
    node.json(&["apply", "--reboot"], 8);
}

#[test]
fn links_and_directories_of_others_are_not_followed() {
    if !root("links that belong to another user") {
        return;
    }
    let node = Node::new(&NodeSpec::default());
    let target = node.path().join("etc/victim");
    std::fs::write(&target, "precious\n").unwrap();
    let custom = node.path().join("boot/grub/custom.cfg");
    symlink("/etc/victim", &custom).unwrap();
    std::os::unix::fs::lchown(&custom, Some(12345), Some(12345)).unwrap();
    refused(&node, 5, &["a link that belongs to user 12345"]);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious\n");
}

#[test]
fn a_full_disk_changes_nothing() {
    let Some(mount) = Mounted::tmpfs("size=24m") else {
        return;
    };
    let root = mount.path().join("node");
    gdr_tests::node::create(&root, &NodeSpec::default()).unwrap();
    let node = Node::at(root);
    // Fill what is left, to the last block.
    let mut filler = std::fs::File::create(mount.path().join("filler")).unwrap();
    let block = vec![0_u8; 4096];
    while std::io::Write::write_all(&mut filler, &block).is_ok() {}
    refused(&node, 1, &["No space left", "free some space"]);
    assert!(!node.has("boot/grub/custom.cfg"));
    // The blocks come back when the last handle closes.
    drop(filler);
    std::fs::remove_file(mount.path().join("filler")).unwrap();
    node.json(&["apply", "--reboot"], 8);
}

#[test]
fn a_read_only_boot_undoes_everything() {
    let node = Node::new(&NodeSpec::default());
    let boot = node.path().join("boot");
    let Some(_mount) = Mounted::read_only(&boot) else {
        return;
    };
    refused(&node, 5, &["Read-only file system"]);
}

#[test]
fn without_root_the_running_system_is_not_touched() {
    if !root("giving root up") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let policy = dir.path().join("policy.toml");
    std::fs::write(&policy, "version = 1\n").unwrap();
    let copy = dir.path().join("gdr-agent");
    std::fs::copy(binary(), &copy).unwrap();
    for verb in ["apply", "rollback"] {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&copy)
            .arg("--policy")
            .arg(&policy)
            .arg(verb)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // The policy lies in a directory of /tmp, which is refused as well; both are a no.
        assert!(matches!(output.status.code(), Some(7 | 9)), "{said}");
        assert!(
            said.contains("root") || said.contains("writable by others"),
            "{said}"
        );
    }
}

fn root(what: &str) -> bool {
    let me = std::fs::metadata("/proc/self")
        .map(|m| std::os::unix::fs::MetadataExt::uid(&m))
        .unwrap();
    if me != 0 {
        println!("SKIPPED: {what} needs root");
    }
    me == 0
}

/// A mount that ends with the test.
struct Mounted {
    at: std::path::PathBuf,
    dir: Option<tempfile::TempDir>,
}

impl Mounted {
    fn tmpfs(options: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().to_path_buf();
        run(&["mount", "-t", "tmpfs", "-o", options, "tmpfs"], &at)
            .then_some(Self { at, dir: Some(dir) })
    }

    fn read_only(at: &Path) -> Option<Self> {
        let bound = run(&["mount", "--bind", at.to_str()?], at);
        let mounted = Self {
            at: at.to_path_buf(),
            dir: None,
        };
        (bound && run(&["mount", "-o", "remount,bind,ro"], at)).then_some(mounted)
    }

    fn path(&self) -> &Path {
        &self.at
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        run(&["umount"], &self.at);
        drop(self.dir.take());
    }
}

fn run(argv: &[&str], at: &Path) -> bool {
    let done = Command::new(argv[0])
        .args(&argv[1..])
        .arg(at)
        .status()
        .is_ok_and(|s| s.success());
    if !done {
        println!(
            "SKIPPED: `{}` does not work here (it needs root)",
            argv.join(" ")
        );
    }
    done
}
