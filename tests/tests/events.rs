//! Events in systemd's own journal: a real journald takes them from a real run, a real journalctl explains them.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use gdr_tests::node::NodeSpec;
use serde_json::Value;
use support::{Node, binary};

fn catalog() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../systemd/gdr-agent.catalog")
}

/// The ids of the page, which a test of the agent holds to its list.
fn ids() -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/events.md");
    let page = std::fs::read_to_string(page).unwrap();
    let row = regex::Regex::new(r"(?m)^\| `([0-9a-f]{32})` ").unwrap();
    row.captures_iter(&page)
        .map(|row| row[1].to_owned())
        .collect()
}

/// False, with a word about it, where a tool or a right is missing; in CI it has to be there.
fn skipped(why: &str) -> bool {
    assert!(
        std::env::var_os("CI").is_none(),
        "in CI this has to run: {why}"
    );
    println!("SKIPPED: {why}");
    true
}

#[test]
fn journalctl_takes_the_catalog_and_explains_each_id() {
    let dir = tempfile::tempdir().unwrap();
    let of = dir.path().join("usr/lib/systemd/catalog");
    std::fs::create_dir_all(&of).unwrap();
    std::fs::create_dir_all(dir.path().join("var/lib/systemd/catalog")).unwrap();
    std::fs::copy(catalog(), of.join("gdr-agent.catalog")).unwrap();
    let journalctl = |args: &[&str]| {
        let output = Command::new("journalctl")
            .arg(format!("--root={}", dir.path().display()))
            .args(["--no-pager", "--quiet"])
            .args(args)
            .output();
        let output = match output {
            Ok(output) => output,
            Err(e) => {
                skipped(&format!("journalctl cannot be started ({e})"));
                return None;
            }
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        assert_eq!(said, "", "{args:?}");
        Some(String::from_utf8(output.stdout).unwrap())
    };
    let Some(_) = journalctl(&["--update-catalog"]) else {
        return;
    };
    let list = journalctl(&["--list-catalog"]).unwrap();
    let listed: BTreeSet<String> = list
        .lines()
        .map(|line| {
            let (id, rest) = line.split_once(' ').unwrap();
            assert!(rest.starts_with("gdr-agent: ") && rest.len() > 20, "{line}");
            id.to_owned()
        })
        .collect();
    assert_eq!(listed, ids());
    for id in &listed {
        let text = journalctl(&["--dump-catalog", id]).unwrap();
        assert!(
            text.contains("\nSubject: ") && text.contains("\nDocumentation: man:gdr-agent(8)\n")
        );
        let (_, body) = text.split_once("\n\n").unwrap();
        assert!(
            body.trim().contains("\n\n"),
            "what it is, and what to do: {text}"
        );
    }
}

/// Runs the agent on a node that is its `/`: mounts and processes of their own, so that nothing of the host can be
/// written, frozen or rebooted, and a journald of their own. Prints the journal.
const LIVE: &str = r#"
set -eu
node=$1 agent=$2 dir=$3
# Frozen file systems must be nobody else's.
mount -t tmpfs tmpfs "$dir"
cp -a "$node/." "$dir"
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/journal /run/log/journal
journald=
for each in /lib/systemd/systemd-journald /usr/lib/systemd/systemd-journald; do
  [ ! -x $each ] || journald=$each
done
[ "$4" = none ] || {
  $journald > /dev/null 2>&1 &
  pid=$!
  tries=0
  until [ -S /run/systemd/journal/socket ]; do
    tries=$((tries + 1))
    [ $tries -lt 300 ]
    sleep 0.1
  done
}
on() {
  unshare --mount sh -c '
    dir=$1; shift
    for part in etc var/lib boot sys proc; do mount --bind "$dir/$part" "/$part"; done
    exec "$@"' sh "$dir" "$agent" "$@"
}
code=0
on apply > /dev/null 2>&1 || code=$?
echo "apply $code"
sed -i 's/"cmdline"\]/"cmdline", "gdr-path"]/' "$dir/etc/gdr-agent/policy.toml"
code=0
on apply > /dev/null 2>&1 || code=$?
echo "second $code"
[ "$4" = none ] || {
  kill $pid
  wait $pid || true
  journalctl --directory=/run/log/journal --no-pager --quiet -o json -t gdr-agent
}
"#;

fn live(journald: bool) -> Option<(Vec<String>, Vec<Value>)> {
    let node = Node::new(&NodeSpec {
        // Nothing to change, so nothing has to be tried by a reboot. ACS stays as it is: the agent does not write into
        // what only looks like sysfs.
        policy: Some(
            "version = 1\n[devices]\ngpu = [\"10de:*/0302\"]\nnic = [\"15b3:*/0207\"]\n\
             [kernel]\niommu = \"keep\"\n[peermem]\nload = false\n[acs]\nscope = \"keep\"\n\
             [verify]\nrequire = [\"cmdline\"]\n"
                .into(),
        ),
        ..NodeSpec::default()
    });
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-c",
            LIVE,
            "sh",
        ])
        .arg(node.path())
        .arg(binary())
        .arg(dir.path())
        .arg(if journald { "journald" } else { "none" })
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("unshare failed") || said.contains("Operation not permitted") {
        skipped(&format!("no mounts of its own: {said}"));
        return None;
    }
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (entries, codes): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with('{'));
    let entries = entries
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    Some((codes.into_iter().map(str::to_owned).collect(), entries))
}

#[test]
fn a_real_journal_has_every_step_with_its_fields() {
    let Some((codes, entries)) = live(true) else {
        return;
    };
    let known = ids();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    for entry in &entries {
        assert!(known.contains(&text(entry, "MESSAGE_ID")), "{entry:#}");
        assert!(!text(entry, "MESSAGE").is_empty(), "{entry:#}");
        assert_eq!(text(entry, "_TRANSPORT"), "journal");
    }
    let boot = |entry: &Value| text(entry, "GDR_BOOT_ID").len();
    assert!(
        entries.iter().all(|entry| boot(entry) == 36),
        "{entries:#?}"
    );
    let states: Vec<String> = entries
        .iter()
        .filter(|entry| entry.get("GDR_FINDING").is_none())
        .map(|entry| text(entry, "GDR_STATE"))
        .collect();
    assert_eq!(
        states,
        [
            "STAGED",
            "VERIFIED",
            "COMMITTING",
            "COMMITTED",
            "STAGED",
            "ROLLING_BACK",
            "QUARANTINED"
        ],
        "{codes:?}"
    );
    let findings: Vec<&Value> = entries
        .iter()
        .filter(|entry| entry.get("GDR_FINDING").is_some())
        .collect();
    assert!(!findings.is_empty(), "{codes:?}");
    for finding in findings {
        assert_eq!(text(finding, "GDR_CHECK"), "gdr-path", "{finding:#}");
        assert!(["failed", "unknown"].contains(&text(finding, "GDR_OUTCOME").as_str()));
        assert_eq!(text(finding, "PRIORITY"), "4");
        let last = entries.last().unwrap();
        assert_eq!(finding["GDR_TRANSACTION"], last["GDR_TRANSACTION"]);
        assert_eq!(
            text(last, "GDR_REASON").split(": ").next(),
            Some("a required check is not met")
        );
    }
}

/// Where nobody listens, everything goes on as it does where somebody does.
#[test]
fn without_a_journal_nothing_else_changes() {
    let (Some((with, _)), Some((without, none))) = (live(true), live(false)) else {
        return;
    };
    assert_eq!(without, with);
    assert_eq!(without, ["apply 0", "second 6"]);
    assert!(none.is_empty());
}
