//! What comes from a file, a log or a name never commands the terminal of who reads the report: neither where escapes are
//! taken out because nobody is there, nor on a terminal, where the program's own colours stay.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::path::Path;
use std::process::{Command, Output};

use gdr_tests::node::NodeSpec;
use support::{Node, binary};

/// It clears the screen, sets the title, hides what follows, goes back in the line, turns it round, and has C1 controls.
const EVIL: &str = "\u{1b}[2J\u{1b}]0;own\u{7}\u{1b}[8m\u{8}\u{202e}\u{9b}2J";

fn run(dir: &Path, args: &[&str]) -> Output {
    Command::new(binary())
        .args(args)
        .current_dir(dir)
        // as on a terminal
        .env("CLICOLOR_FORCE", "1")
        .output()
        .unwrap()
}

/// What is left of a text without newlines and the program's own colours must have no control character.
fn check(what: &str, output: &Output) -> String {
    let mut all = String::new();
    for (stream, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(|c: char| {
            c.is_control() && c != '\n' && c != '\t' || matches!(c, '\u{202a}'..='\u{202e}')
        }) {
            let here = &rest[at..];
            let colour = here.strip_prefix("\u{1b}[").and_then(|numbers| {
                let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
                let hides = numbers[..end].split(';').any(|n| n == "8");
                (numbers[end..].starts_with('m') && !hides).then_some(2 + end + 1)
            });
            let Some(length) = colour else {
                let show: String = here.chars().take(40).collect();
                panic!("{what}: {stream} has {show:?}");
            };
            rest = &here[length..];
        }
        all.push_str(&text);
    }
    all
}

#[test]
fn no_text_commands_the_terminal() {
    let node = Node::new(&NodeSpec::default());
    let name = format!("job{EVIL}.log");
    node.write(
        &name,
        format!(
            "{EVIL}host:1:2 [0] NCCL INFO NCCL_NET set by environment to {EVIL}Socket\n\
             h{EVIL}:1:2 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 '{EVIL}mlx5_0'\n\
             h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/{EVIL}IB/0\n\
             h:1:2 [0] NCCL WARN NET/IB : No device found.{EVIL}\n"
        )
        .as_bytes(),
    );
    let perftest = format!("perf{EVIL}.txt");
    node.write(
        &perftest,
        format!(
            "initializing CUDA{EVIL}\n Device         : {EVIL}mlx5_0\n #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n \
             65536 5000 0.00 {EVIL}12.00 0.1\n Couldn't allocate MR {EVIL}\n"
        )
        .as_bytes(),
    );
    let json = format!("perf{EVIL}.json");
    let evil = serde_json::to_string(EVIL).unwrap();
    node.write(
        &json,
        format!(
            "{{ test_info: {{ test: {evil}, Device: {evil}, Number_of_qps: 1 }}, results: {{ MsgSize: 65536, n_iterations: 5, BW_peak: 0, BW_average: 12.0, MsgRate: 0.02 }} }}"
        )
        .as_bytes(),
    );
    // what the node itself says
    node.write(
        "etc/os-release",
        format!("ID=debian\nNAME=\"{EVIL}\"\nPRETTY_NAME=\"{EVIL}\"\n").as_bytes(),
    );
    node.write(
        "etc/nccl.conf",
        format!("NCCL_IB_DISABLE=1{EVIL}\nNCCL_{EVIL}=1\n{EVIL}\n").as_bytes(),
    );
    node.write(
        "proc/cmdline",
        format!("root=/dev/sda1 iommu={EVIL} gdr=1\n").as_bytes(),
    );
    let missing = format!("none{EVIL}");
    let dir = node.path();
    let archive = dir.join(format!("a{EVIL}.tar.zst")).display().to_string();
    for args in [
        &[
            "--root",
            ".",
            "doctor",
            "--nccl-log",
            &name,
            "--perftest",
            &perftest,
        ][..],
        &[
            "--root",
            ".",
            "-v",
            "doctor",
            "--nccl-log",
            &name,
            "--nccl-log",
            &missing,
        ],
        &["nccl-log", &name, &missing],
        &["bandwidth", "--from", &perftest, "--from", &json],
        &["bandwidth", "--from", &missing],
        &[
            "--root",
            ".",
            "capture",
            &archive,
            "--nccl-log",
            &name,
            "--perftest",
            &json,
            "--perftest",
            &missing,
        ],
        &["doctor", "--capture", &archive],
        &["doctor", "--capture", &name],
        &["doctor", "--capture", &missing],
        &["--root", ".", "verify"],
        &["--root", ".", "plan"],
        &["--root", ".", "facts"],
        &["--root", ".", "cmdline"],
        &["--root", ".", "topology"],
        &["--root", ".", "acs", "show"],
        &["--root", ".", "metrics"],
        &["policy", "check", &name],
        &["--policy", &missing, "plan"],
        &["--root", &missing, "doctor"],
    ] {
        let text = check(&args.join(" ").escape_debug().to_string(), &run(dir, args));
        assert!(!text.is_empty(), "{args:?}");
    }
    // the check itself sees what it looks for
    let own = Output {
        stdout: format!("\u{1b}[1mfine\u{1b}[0m\n{EVIL}").into_bytes(),
        ..run(dir, &["--version"])
    };
    assert!(std::panic::catch_unwind(|| check("own", &own)).is_err());
}
