//! What is looked at and what is written are the same directory, whoever exchanges names in between.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test looks at the machine from outside"
)]

use std::os::unix::fs::{lchown, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use gdr_agent::sys::{Root, write};

#[test]
fn a_directory_that_is_exchanged_for_a_link_while_it_is_written_to_leads_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for name in ["d", "victim"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    symlink("/victim", at("link")).unwrap();
    if lchown(at("link"), Some(12345), Some(12345)).is_err() {
        assert!(std::env::var_os("CI").is_none(), "in CI this runs as root");
        println!("SKIPPED: only root can give a link to somebody else");
        return;
    }
    let root = Root::open(dir.path()).unwrap();
    let over = AtomicBool::new(false);
    let (mut written, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                exchange(&at("d"), &at("link"));
            }
        });
        // Both have to happen, or nothing was raced.
        for round in 0..20_000 {
            match write::replace(&root, "/d/file", b"text", None) {
                Ok(()) => written += 1,
                Err(_) => refused += 1,
            }
            if round > 500 && written > 50 && refused > 50 {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(
        written > 0 && refused > 0,
        "{written} written, {refused} refused"
    );
    let found: Vec<_> = std::fs::read_dir(at("victim")).unwrap().collect();
    assert!(found.is_empty(), "{found:?}");
}

/// Both names at once, so that neither is ever missing.
fn exchange(one: &Path, other: &Path) {
    let flags = rustix::fs::RenameFlags::EXCHANGE;
    rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, flags).unwrap();
}
