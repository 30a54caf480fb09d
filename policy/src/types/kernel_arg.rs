//! One argument of the kernel command line.

use super::{Invalid, checked_text};
use crate::escape::{character, quote};

/// The longest argument taken, in bytes. Whole command lines end at 2048 on x86 and arm64.
const MAX_LENGTH: usize = 256;

/// What may stand in an argument besides letters and digits.
///
/// `;` is refused although `pci=disable_acs_redir=A;B` has it: distributions copy
/// GRUB_CMDLINE_LINUX unquoted into grub.cfg, where it ends the `linux` command and cuts the rest
/// off. `$`, as in `memmap=`, is refused for the same reason.
const PUNCTUATION: &str = ",:@/.=-_+%";

/// Arguments that belong to the boot loader or to the trial boot, with why they are left alone.
const RESERVED: [(&str, &str); 8] = [
    (
        "root",
        "the boot loader's configuration names the root file system",
    ),
    (
        "init",
        "another init would never run the agent that ends a trial boot",
    ),
    (
        "rdinit",
        "another init would never run the agent that ends a trial boot",
    ),
    (
        "panic",
        "a trial boot must reboot on a panic; set trial.panic for its delay",
    ),
    ("BOOT_IMAGE", "the boot loader writes it"),
    ("initrd", "the boot loader writes it"),
    ("gdr", "gdr.* are the agent's own marks"),
    ("gdr.", "gdr.* are the agent's own marks"),
];

checked_text! {
    /// A kernel argument, `name` or `name=value`, in characters that neither the shell, GRUB's
    /// scripts nor the kernel's own quoting can misread.
    KernelArg,
    check,
    "A kernel argument, `name` or `name=value`: letters, digits and , : @ / . = - _ + %",
    "^[A-Za-z0-9,:@/._+%][A-Za-z0-9,:@/.=_+%-]{0,255}$"
}

fn check(text: &str) -> Result<(), Invalid> {
    if text.is_empty() {
        return Err(Invalid::new("a kernel argument cannot be empty"));
    }
    if text.len() > MAX_LENGTH {
        return Err(Invalid::new(format!(
            "a kernel argument of {} bytes is too long, the limit is {MAX_LENGTH}",
            text.len()
        )));
    }
    if let Some(bad) = text
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !PUNCTUATION.contains(*c))
    {
        let invalid = Invalid::new(format!(
            "kernel argument {} has {} in it",
            quote(text),
            character(bad)
        ));
        return Err(invalid.help(match bad {
            ' ' => "write each argument as its own entry of the list".to_owned(),
            ';' => "GRUB would end the command there; to clear ACS on several devices by the \
                    command line, write acs.method = \"cmdline\""
                .to_owned(),
            _ => format!("letters, digits and {} are allowed", spaced(PUNCTUATION)),
        }));
    }
    if text.starts_with('-') {
        return Err(
            Invalid::new(format!("kernel argument {} starts with `-`", quote(text)))
                .help("what follows `--` goes to init, not to the kernel"),
        );
    }
    if text.starts_with('=') {
        return Err(Invalid::new(format!(
            "kernel argument {} has no name",
            quote(text)
        )));
    }
    Ok(())
}

fn spaced(text: &str) -> String {
    text.chars().map(String::from).collect::<Vec<_>>().join(" ")
}

impl KernelArg {
    /// What stands before the first `=`.
    pub fn name(&self) -> &str {
        self.as_str()
            .split_once('=')
            .map_or(self.as_str(), |(name, _)| name)
    }

    /// What stands after the first `=`; `None` without one.
    pub fn value(&self) -> Option<&str> {
        self.as_str().split_once('=').map(|(_, value)| value)
    }

    /// The name as the kernel compares it: `-` and `_` are the same (`parameq` in
    /// `kernel/params.c`).
    pub fn folded_name(&self) -> String {
        self.name().replace('-', "_")
    }

    /// Why a policy may neither set nor remove this argument; `None` where it may.
    pub fn reserved(&self) -> Option<&'static str> {
        let name = self.folded_name();
        RESERVED
            .iter()
            .find(|(reserved, _)| {
                name == *reserved || (reserved.ends_with('.') && name.starts_with(reserved))
            })
            .map(|(_, why)| *why)
    }
}
