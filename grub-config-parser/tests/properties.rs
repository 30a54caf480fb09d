//! What must hold for any bytes, on generated files and on cut and mixed real ones. The fuzz targets
//! run the same checks without a bound.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests read files and panic"
)]

mod checks;
mod common;

use proptest::prelude::*;

const SHELL: &[&str] = &[
    "GRUB_CMDLINE_LINUX",
    "GRUB_CMDLINE_LINUX_DEFAULT",
    "=",
    "\"",
    "'",
    "$",
    "${",
    "}",
    ":-",
    ":+",
    "quiet",
    " ",
    "iommu=pt",
    "\n",
    "\\\n",
    "\\",
    "#",
    "export ",
    "if true; then ",
    "fi",
    "for x in ",
    "; do ",
    "; done",
    "(",
    ")",
    "$(",
    "`",
    ";",
    "&&",
    "||",
    "eval ",
    "\r",
    "\0",
    "\u{feff}",
    "é",
    "<<E\n",
    "E\n",
    "case ",
    " in ",
    "esac",
    "{ ",
];
const SCRIPT: &[&str] = &[
    "menuentry ",
    "submenu ",
    "linux ",
    "/k",
    " ",
    "\n",
    "{",
    "}",
    " ; ",
    "'",
    "\"",
    "$",
    "${a}",
    "$a",
    "set a=",
    "quiet",
    "iommu=pt",
    "if [ ",
    " ]; then\n",
    "\nfi\n",
    "else\n",
    "function f {\n",
    "f\n",
    "for x in 1 2; do\n",
    "done\n",
    "--id ",
    "load_env\n",
    "blscfg\n",
    "\\",
    "\\\n",
    "#",
    "\r",
    "\0",
    "é",
    "$1",
    "eval ",
    "menuentry a { linux /k x; }\n",
];
const ENTRY: &[&str] = &[
    "linux",
    "options",
    "title",
    "version",
    " ",
    "\t",
    "\n",
    "\r\n",
    "#",
    "/k",
    "$kernelopts",
    "$tuned_params",
    "quiet",
    "iommu=pt",
    "\"a b\"",
    "'",
    "\\",
    ";",
    "{",
    "$",
    "é",
    "\0",
    "x",
    "--",
];
const LINE: &[&str] = &[
    "quiet",
    "iommu=pt",
    "iommu=off",
    "console=tty0",
    "--",
    " ",
    "  ",
    "\t",
    "\n",
    "\"",
    "a=\"b c\"",
    "=",
    "x.y=1",
    "-",
    "_",
    "é",
    "\u{a0}",
    "#",
    "# c\n",
    "\r\n",
    "\0",
];
const BLOCK: &[&str] = &[
    "saved_entry=",
    "kernelopts=",
    "root=/dev/sda1 ro",
    "quiet ",
    "\n",
    "\\\\",
    "\\\n",
    "#",
    "########",
    "=",
    "x",
    "\0",
    "é",
];

/// Pieces of a format in any order, and a few bytes of anything.
fn mixed(pieces: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        12 => prop::sample::select(pieces).prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn block() -> impl Strategy<Value = Vec<u8>> {
    (mixed(BLOCK), 0..80usize).prop_map(|(body, padding)| {
        [
            b"# GRUB Environment Block\n".as_slice(),
            &body,
            &b"#".repeat(padding),
        ]
        .concat()
    })
}

proptest! {
    #![proptest_config(common::cases(1000))]

    #[test]
    fn shell_files(data in mixed(SHELL)) {
        checks::defaults(&data);
    }

    #[test]
    fn scripts(data in mixed(SCRIPT)) {
        checks::cfg(&data);
    }

    #[test]
    fn entries(data in mixed(ENTRY)) {
        checks::bls(&data);
    }

    #[test]
    fn command_lines(data in mixed(LINE)) {
        checks::cmdline(&data);
    }

    #[test]
    fn kernel_command_line_files(data in mixed(LINE)) {
        checks::kernel_cmdline(&data);
    }

    #[test]
    fn environment_blocks(data in block()) {
        checks::grubenv(&data);
    }
}

/// The real files as they are, cut at some places, and with a piece taken out.
fn real(kind: &str, check: fn(&[u8])) {
    for path in common::corpus_files(kind) {
        let data = std::fs::read(&path).unwrap();
        check(&data);
        for part in 1..8 {
            let at = data.len() * part / 8;
            check(&data[..at]);
            check(&[&data[..at], &data[(at + 7).min(data.len())..]].concat());
        }
    }
}

#[test]
fn the_checks_hold_on_the_corpus() {
    real("grub-default", checks::defaults);
    real("grub-cfg", checks::cfg);
    real("bls", checks::bls);
    real("grubenv", checks::grubenv);
    real("kernel-cmdline", checks::kernel_cmdline);
    real("kernel-cmdline", checks::cmdline);
}
