//! What real kernel logs and module lists say, by the corpus that `GDR_CORPUS` names.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test looks at the machine from outside"
)]

use std::path::{Path, PathBuf};

use gdr_agent::facts::refcounts;
use gdr_agent::kmod::{Attempt, LogFinding, Refused, classify, log_findings};

fn corpus(folder: &str) -> Option<PathBuf> {
    match std::env::var_os("GDR_CORPUS") {
        Some(path) => Some(PathBuf::from(path).join(folder)),
        None => {
            println!("skipped: GDR_CORPUS is not set");
            None
        }
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(
        &std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())),
    )
    .into_owned()
}

/// A report has modprobe's words and the kernel's in one file.
fn told(text: &str, stub: Option<bool>) -> (Refused, Vec<String>) {
    let (said, log): (Vec<String>, Vec<String>) = text
        .lines()
        .map(str::to_owned)
        .partition(|line| line.starts_with("modprobe:"));
    classify(&Attempt {
        stderr: &said.join("\n"),
        log: Some(&log),
        stub,
    })
}

#[test]
fn a_mismatch_names_its_symbols() {
    let Some(dir) = corpus("dmesg") else { return };
    for (file, symbols) in [
        ("s02-nv_peer_mem-disagrees-about-version.txt", 4),
        ("s03-nvidia_peermem-gb300-aarch64-disagrees.txt", 3),
    ] {
        let text = read(&dir.join(file));
        let (refused, evidence) = told(&text, None);
        assert_eq!(refused, Refused::AbiMismatch, "{file}: {evidence:?}");
        let found = log_findings(text.lines());
        let disagrees = found
            .iter()
            .filter(|f| matches!(f, LogFinding::Disagrees(_)))
            .count();
        assert_eq!(disagrees, symbols, "{file}: {found:?}");
        assert!(
            evidence
                .iter()
                .any(|line| line.contains("ib_register_peer_memory_client"))
        );
        // The kernel says the same twice, with EINVAL the second time: not a missing interface.
        assert!(
            found
                .iter()
                .all(|f| !matches!(f, LogFinding::UnknownSymbol(_, -2)))
        );
    }
}

#[test]
fn an_error_without_a_line_in_the_log_is_known_by_the_file_alone() {
    let Some(dir) = corpus("dmesg") else { return };
    let text = read(&dir.join("s04-modprobe-invalid-argument-no-dmesg-ubuntu2204.txt"));
    assert_eq!(told(&text, None).0, Refused::Unknown);
    assert_eq!(told(&text, Some(true)).0, Refused::Stub);
}

#[test]
fn other_logs_say_nothing_about_loading() {
    let Some(dir) = corpus("dmesg") else { return };
    let mut seen = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("s02-") || name.starts_with("s03-") {
            continue;
        }
        seen += 1;
        assert_eq!(log_findings(read(&path).lines()), [], "{name}");
    }
    assert!(seen >= 11, "{seen}");
}

#[test]
fn module_lists_of_both_kinds() {
    let Some(dir) = corpus("lsmod-modinfo") else {
        return;
    };
    for (file, peermem, legacy) in [
        ("s01-peermem-loaded-h100.txt", true, false),
        ("s02-peermem-loaded-but-nccl-disabled.txt", true, false),
        ("s03-nv_peer_mem-legacy.txt", false, true),
        ("s04-dgx-spark-no-peermem.txt", false, false),
        ("30-nbr-profiling-proc-modules.txt", false, false),
        ("36-nbr-nvidiabugreport-proc-modules.txt", false, false),
        ("49-nbr-git_examples-proc-modules.txt", false, false),
        ("67-nbr-fileDrop-proc-modules.txt", false, false),
        ("73-nbr-Lambda-Bug-report-proc-modules.txt", false, false),
        ("79-nbr-nvidia-errors-srin-proc-modules.txt", false, false),
    ] {
        let modules = refcounts(&read(&dir.join(file)));
        assert!(modules.len() >= 2, "{file}");
        assert_eq!(modules.contains_key("nvidia_peermem"), peermem, "{file}");
        assert_eq!(modules.contains_key("nv_peer_mem"), legacy, "{file}");
    }
    let loaded = refcounts(&read(&dir.join("s01-peermem-loaded-h100.txt")));
    assert_eq!(loaded.get("nvidia"), Some(&147));
    assert_eq!(loaded.get("nvidia_peermem"), Some(&0));
}
