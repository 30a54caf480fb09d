//! `/run/reboot-required` in the format of those who watch for it, and never a line but the agent's own.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    missing_docs
)]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use gdr_agent::reboot::{Coordinator, Kind, Request, Sentinel, Standing};
use gdr_agent::sys::Root;

const AGE: Duration = Duration::from_secs(100_000);

fn node() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("run")).unwrap();
    std::fs::create_dir_all(dir.path().join("var")).unwrap();
    symlink("../run", dir.path().join("var/run")).unwrap();
    dir
}

fn sentinel(dir: &Path) -> Sentinel {
    Sentinel::new(Root::open(dir).unwrap())
}

fn request() -> Request {
    Request {
        reason: "trial".to_owned(),
        respect_inhibitors: true,
        back: false,
    }
}

fn read(dir: &Path, path: &str) -> Option<String> {
    std::fs::read_to_string(dir.join(path)).ok()
}

#[test]
fn it_is_written_as_update_notifier_writes_it_and_taken_away_again() {
    let dir = node();
    let sentinel = sentinel(dir.path());
    assert!(matches!(sentinel.poll(AGE), Ok(Standing::Gone(_))));
    let mut granted = 0;
    sentinel
        .request(&request(), &mut || {
            granted += 1;
            assert_eq!(
                read(dir.path(), "run/reboot-required"),
                None,
                "recorded before it can be seen"
            );
            Ok(())
        })
        .unwrap();
    assert_eq!(granted, 1);
    let text = read(dir.path(), "run/reboot-required").unwrap();
    assert_eq!(text, "*** System restart required ***\n");
    assert_eq!(
        read(dir.path(), "run/reboot-required.pkgs").unwrap(),
        "gdr-agent\n"
    );
    assert_eq!(read(dir.path(), "var/run/reboot-required"), Some(text));
    assert!(matches!(sentinel.poll(AGE), Ok(Standing::Coming(_))));
    sentinel.request(&request(), &mut || Ok(())).unwrap();
    assert_eq!(
        read(dir.path(), "run/reboot-required.pkgs").unwrap(),
        "gdr-agent\n",
        "one line"
    );
    sentinel.cancel().unwrap();
    sentinel.release().unwrap();
    assert_eq!(
        std::fs::read_dir(dir.path().join("run")).unwrap().count(),
        0
    );
}

#[test]
fn what_others_want_stays() {
    let dir = node();
    std::fs::write(
        dir.path().join("run/reboot-required"),
        "*** Neustart erforderlich ***\n",
    )
    .unwrap();
    std::fs::write(
        dir.path().join("run/reboot-required.pkgs"),
        "linux-image-6.1.0-9-amd64\nlinux-base",
    )
    .unwrap();
    let sentinel = sentinel(dir.path());
    sentinel.request(&request(), &mut || Ok(())).unwrap();
    assert_eq!(
        read(dir.path(), "run/reboot-required.pkgs").unwrap(),
        "linux-image-6.1.0-9-amd64\nlinux-base\ngdr-agent\n"
    );
    assert_eq!(
        read(dir.path(), "run/reboot-required").unwrap(),
        "*** Neustart erforderlich ***\n"
    );
    sentinel.cancel().unwrap();
    assert_eq!(
        read(dir.path(), "run/reboot-required.pkgs").unwrap(),
        "linux-image-6.1.0-9-amd64\nlinux-base\n"
    );
    assert!(read(dir.path(), "run/reboot-required").is_some());
    // Without a line of the agent's, nothing is touched.
    sentinel.cancel().unwrap();
    assert!(read(dir.path(), "run/reboot-required").is_some());
}

#[test]
fn a_file_that_somebody_else_made_alone_is_not_the_agents() {
    let dir = node();
    std::fs::write(dir.path().join("run/reboot-required"), "").unwrap();
    let sentinel = sentinel(dir.path());
    assert!(matches!(sentinel.poll(AGE), Ok(Standing::Gone(_))));
    sentinel.cancel().unwrap();
    assert!(read(dir.path(), "run/reboot-required").is_some());
}

#[test]
fn a_var_run_of_its_own_gets_the_files_too() {
    let dir = node();
    std::fs::remove_file(dir.path().join("var/run")).unwrap();
    std::fs::create_dir(dir.path().join("var/run")).unwrap();
    let sentinel = sentinel(dir.path());
    sentinel.request(&request(), &mut || Ok(())).unwrap();
    for at in ["run", "var/run"] {
        assert!(read(dir.path(), &format!("{at}/reboot-required")).is_some());
        assert_eq!(
            read(dir.path(), &format!("{at}/reboot-required.pkgs")).unwrap(),
            "gdr-agent\n"
        );
    }
    sentinel.cancel().unwrap();
    assert_eq!(
        std::fs::read_dir(dir.path().join("var/run"))
            .unwrap()
            .count(),
        0
    );
}

#[test]
fn without_a_record_there_is_no_file_and_a_link_is_not_followed() {
    let dir = node();
    let refusal = sentinel(dir.path())
        .request(&request(), &mut || Err("disk full".to_owned()))
        .unwrap_err();
    assert_eq!(refusal.kind(), Kind::Record);
    assert_eq!(
        std::fs::read_dir(dir.path().join("run")).unwrap().count(),
        0
    );
    symlink("/etc/passwd", dir.path().join("run/reboot-required.pkgs")).unwrap();
    std::fs::create_dir(dir.path().join("etc")).unwrap();
    std::fs::write(dir.path().join("etc/passwd"), "root:x:0:0::/:/bin/sh\n").unwrap();
    let _ = sentinel(dir.path()).request(&request(), &mut || Ok(()));
    let passwd = read(dir.path(), "etc/passwd").unwrap();
    assert!(passwd.starts_with("root:x:0:0"), "{passwd}");
}

#[test]
fn people_are_told_what_kured_does() {
    let dir = node();
    let asked = sentinel(dir.path()).questions(&request(), true);
    assert!(
        asked[0]
            .asks
            .contains("uncordons it before the trial is verified"),
        "{asked:?}"
    );
}
