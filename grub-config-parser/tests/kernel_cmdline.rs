//! `/etc/kernel/cmdline`: read as the scripts of `kernel-install` do, edited byte for byte.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start programs and panic"
)]

mod common;

use std::process::Command;

use grub_config_parser::cmdline::{Arg, Edit};
use grub_config_parser::kernel_cmdline::{KernelCmdline, KernelCmdlineError};
use proptest::prelude::*;

proptest! {
    #![proptest_config(common::cases(60))]

    /// The two readers, as systemd and Red Hat ship them.
    #[test]
    fn the_words_are_those_that_the_shells_read(text in "([a-z=\"'\\\\#*$]{1,4}|[ \t\n]){0,20}") {
        let (Some(dash), Some(bash)) = (common::program("sh"), common::program("bash")) else { return Ok(()) };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cmdline");
        std::fs::write(&path, &text).unwrap();
        let read = |shell, script: &str| {
            let output = common::run(Command::new(shell).args(["-c", script, "x"]).arg(&path));
            String::from_utf8(output.stdout).unwrap()
        };
        let systemd = read(dash, r#"o="$(tr -s "$IFS" ' ' <"$1")"; printf '%s' "${o% }""#);
        let red_hat = read(bash, r#"read -r -d '' -a o < "$1"; printf '%s' "${o[*]}""#);
        let own = KernelCmdline::parse(text.as_bytes()).unwrap().options();
        prop_assert_eq!(&own, &red_hat);
        prop_assert_eq!(&own, systemd.trim_start_matches(' '));
    }
}

#[test]
fn an_edit_keeps_lines_and_comments() {
    let edit = |text: &str, edit: &Edit<'_>| {
        let edited = KernelCmdline::parse(text.as_bytes()).unwrap().edit(edit);
        edited.map(|file| file.map(|file| String::from_utf8(file.as_bytes().to_vec()).unwrap()))
    };
    let pt = Arg::new("iommu=pt");
    for (text, wanted) in [
        ("ro\n", Some("ro iommu=pt\n")),
        ("ro", Some("ro iommu=pt")),
        ("", Some("iommu=pt\n")),
        ("\n", Some("\niommu=pt\n")),
        (
            "# c\nro quiet\n# end\n",
            Some("# c\nro quiet iommu=pt\n# end\n"),
        ),
        ("# c", Some("# c\niommu=pt\n")),
        ("ro -- s\nx\n", Some("ro iommu=pt -- s\nx\n")),
        ("iommu=pt\n# iommu=off\n", None),
        (
            "iommu=pt\n# c\niommu=off\n",
            Some("iommu=pt\n# c\niommu=off iommu=pt\n"),
        ),
    ] {
        assert_eq!(
            edit(text, &Edit::Set(&pt)).unwrap().as_deref(),
            wanted,
            "{text:?}"
        );
    }
    assert_eq!(
        edit("quiet\tro\n# quiet\n quiet x\n", &Edit::Remove("quiet"))
            .unwrap()
            .as_deref(),
        Some("ro\n# quiet\n x\n")
    );
    let quote = Err(KernelCmdlineError::Quote { line: 2 });
    assert_eq!(edit("ro\na=\"b\n# c\nd\n", &Edit::Set(&pt)), quote);
    assert_eq!(
        KernelCmdline::parse(b"a\n\xff"),
        Err(KernelCmdlineError::NotText { line: 2 })
    );
    assert_eq!(
        KernelCmdline::parse(b"a\0"),
        Err(KernelCmdlineError::Nul { line: 1 })
    );
}
