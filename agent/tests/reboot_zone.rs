//! Clocks of places, from the node's own time zone database.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs
)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use gdr_agent::reboot::{Request, choose, seconds_east};
use gdr_agent::sys::Root;
use gdr_policy::{Source, TimeZone};
use gdr_tests::node::{self, NodeSpec};

const DATABASE: &str = "/usr/share/zoneinfo";

/// Every name of the database that a policy may have, in folders of two levels.
fn zones() -> Vec<String> {
    fn walk(dir: &Path, prefix: &str, zones: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let entry = entry.unwrap();
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                walk(&entry.path(), &format!("{name}/"), zones);
            } else if name
                .parse::<TimeZone>()
                .is_ok_and(|zone| zone.place().is_some())
            {
                zones.push(name);
            }
        }
    }
    let mut zones = Vec::new();
    walk(Path::new(DATABASE), "", &mut zones);
    zones.sort();
    zones
}

/// Offsets by the C library: `+HH:MM:SS`.
fn by_date(zone: &str, instants: &[i64]) -> Vec<i64> {
    let dir = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for at in instants {
        writeln!(text, "@{at}").unwrap();
    }
    let file = dir.path().join("instants");
    std::fs::write(&file, text).unwrap();
    let output = Command::new("date")
        .env("TZ", format!(":{zone}"))
        .env("LC_ALL", "C")
        .args(["+%::z", "-f"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let seconds = |line: &str| {
        let (sign, rest) = line.split_at(1);
        let parts: Vec<i64> = rest.split(':').map(|n| n.parse().unwrap()).collect();
        (parts[0] * 3600 + parts[1] * 60 + parts[2]) * if sign == "-" { -1 } else { 1 }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(seconds).collect()
}

/// Every zone, from 1970 to 2100: every 298 days, which meets summers and winters, and each quarter of an hour around the
/// changes of 2026 in Europe.
#[test]
fn offsets_are_those_of_the_c_library() {
    let zones = zones();
    if zones.is_empty() {
        println!("SKIPPED: there is no {DATABASE}; install the package tzdata");
        return;
    }
    assert!(zones.len() > 300, "{}", zones.len());
    let root = Root::open(Path::new("/")).unwrap();
    let mut instants: Vec<i64> = (0..160).map(|n| n * 25_777_777).collect();
    for change in [1_774_746_000, 1_792_890_000] {
        instants.extend((-8..8).map(|n| change + n * 900));
    }
    for zone in &zones {
        let parsed: TimeZone = zone.parse().unwrap();
        let expected = by_date(zone, &instants);
        for (at, expected) in instants
            .iter()
            .zip(expected)
            .step_by(if zone.starts_with("Europe") { 1 } else { 3 })
        {
            assert_eq!(
                seconds_east(&root, &parsed, *at),
                Ok(expected),
                "{zone} at {at}"
            );
        }
    }
}

#[test]
fn fixed_offsets_need_no_database() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    for (zone, expected) in [("UTC", 0), ("+02:00", 7200), ("-03:30", -12_600)] {
        assert_eq!(
            seconds_east(&root, &zone.parse().unwrap(), 1_800_000_000),
            Ok(expected)
        );
    }
}

fn put(dir: &Path, bytes: &[u8]) {
    let path = dir.join("usr/share/zoneinfo/Europe/Berlin");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_zone_that_cannot_be_used_is_an_error_that_names_the_file() {
    let berlin: TimeZone = "Europe/Berlin".parse().unwrap();
    let says = |dir: &Path| {
        let root = Root::open(dir).unwrap();
        seconds_east(&root, &berlin, 1_800_000_000).unwrap_err()
    };
    let dir = tempfile::tempdir().unwrap();
    let text = says(dir.path());
    assert!(
        text.contains("Europe/Berlin") && text.contains("install tzdata"),
        "{text}"
    );
    let real = std::fs::read(format!("{DATABASE}/Europe/Berlin")).unwrap_or_default();
    let mut cut = real.clone();
    cut.truncate(real.len() / 2);
    let huge = vec![b'x'; 65 << 10];
    let mut counts = b"TZif2".to_vec();
    counts.extend([0xff; 39]);
    for bytes in [&b""[..], b"TZif", b"not a zone\n", &cut, &huge, &counts] {
        put(dir.path(), bytes);
        let text = says(dir.path());
        assert!(text.contains("usr/share/zoneinfo/Europe/Berlin"), "{text}");
    }
    // A directory of that name.
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("usr/share/zoneinfo/Europe/Berlin")).unwrap();
    assert!(says(dir.path()).contains("Europe/Berlin"));
}

/// The root's database counts, not this machine's; links in it stay inside.
#[test]
fn the_database_is_the_roots() {
    let Ok(tokyo) = std::fs::read(format!("{DATABASE}/Asia/Tokyo")) else {
        println!("SKIPPED: there is no {DATABASE}/Asia/Tokyo; install the package tzdata");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &tokyo);
    let root = Root::open(dir.path()).unwrap();
    let zone = |name: &str| seconds_east(&root, &name.parse().unwrap(), 1_800_000_000);
    assert_eq!(zone("Europe/Berlin"), Ok(9 * 3600));
    let link = dir.path().join("usr/share/zoneinfo/Europe/Paris");
    std::os::unix::fs::symlink("/usr/share/zoneinfo/Europe/Berlin", link).unwrap();
    assert_eq!(zone("Europe/Paris"), Ok(9 * 3600));
    assert!(zone("Asia/Tokyo").is_err());
}

#[test]
fn a_policy_with_a_zone_that_the_node_does_not_know_changes_nothing_and_keeps_the_window_closed() {
    let dir = tempfile::tempdir().unwrap();
    node::create(dir.path(), &NodeSpec::default()).unwrap();
    let gates = "[reboot.gates]\nwindows = [\"00:00-24:00\"]\ntime_zone = \"Europe/Berlin\"\n";
    let drop_ins = dir.path().join("etc/gdr-agent/policy.d");
    std::fs::create_dir_all(&drop_ins).unwrap();
    std::fs::write(drop_ins.join("zone.toml"), gates).unwrap();
    let apply = || {
        Command::new(env!("CARGO_BIN_EXE_gdr-agent"))
            .arg("--root")
            .arg(dir.path())
            .args(["apply", "--no-reboot"])
            .output()
            .unwrap()
    };
    let output = apply();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(
        text.contains("Europe/Berlin") && text.contains("nothing was changed"),
        "{text}"
    );
    assert!(!dir.path().join("var/lib/gdr-agent/tx").exists());

    // A database that goes away later closes the window, and never opens it. The way back does not look at it.
    let source = Source {
        name: "policy.toml".to_owned(),
        text: format!("version = 1\n{gates}").into_bytes(),
    };
    let policy = gdr_policy::load(&[source]).unwrap().policy;
    let window = |back: bool| {
        let root = Root::open(dir.path()).unwrap();
        let request = Request {
            reason: String::new(),
            respect_inhibitors: true,
            back,
        };
        let questions = choose(&root, &policy).unwrap().questions(&request, true);
        questions
            .into_iter()
            .find(|q| q.who == "window")
            .unwrap()
            .no
            .unwrap()
    };
    assert!(window(false).unwrap().contains("not known"));
    assert_eq!(window(true), None);
    let Ok(berlin) = std::fs::read(format!("{DATABASE}/Europe/Berlin")) else {
        return;
    };
    put(dir.path(), &berlin);
    assert_eq!(window(false), None);
    assert_eq!(apply().status.code(), Some(8));
}
