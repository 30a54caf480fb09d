//! The trial entry and the hook in custom.cfg that boots it once; the two variables in grubenv.

use grub_config_parser::cfg::quote;
use grub_config_parser::cmdline::CommandLine;
use grub_config_parser::grubenv;

use super::Input;
use crate::journal::Trial;
use crate::machine::TxnId;

/// The first line of our block in custom.cfg.
pub const HOOK_BEGIN: &str = "### BEGIN gdr-agent trial ###";
const HOOK_END: &str = "### END gdr-agent trial ###";

/// The running line without what GRUB and a trial add to an entry's arguments.
pub(super) fn without_extras(line: &CommandLine) -> CommandLine {
    // What follows the marker was put there with it.
    let own = line.args().iter().take_while(|a| a.name() != MARKER);
    CommandLine::from_args(own.filter(|a| a.name() != "BOOT_IMAGE").cloned())
}

/// Turns what would wait for a person at a console into a reset; in trial boots only.
/// initramfs-tools reboots on `panic=`, dracut needs the two `rd.` arguments, systemd the last two.
const SAFETY: [&str; 5] = [
    "oops=panic",
    "rd.emergency=reboot",
    "rd.shell=0",
    "systemd.crash_reboot=1",
    "systemd.crash_shell=0",
];

/// The argument that tells user space which transaction's trial it is in. With a dot in its name the
/// kernel takes it for a module's and does not hand it to init.
pub(crate) const MARKER: &str = "gdr.txn";

/// The trial's arguments: target, then the marker, then everything that only a trial has.
pub(super) fn trial_args(input: &Input, target: &CommandLine, modules: &[String]) -> String {
    let mut args: Vec<String> = target.args().iter().map(|a| a.raw().to_owned()).collect();
    args.push(format!("{MARKER}={}", input.txn));
    if !modules.is_empty() {
        args.push(format!("modules_load={}", modules.join(",")));
    }
    args.extend(SAFETY.iter().map(|a| (*a).to_owned()));
    args.push(format!("panic={}", input.policy.trial.panic));
    args.join(" ")
}

/// Our block in custom.cfg: the hook that disarms, reads back and only then chooses, and the entry.
///
/// All values have the same length, so that GRUB's write changes no other byte of grubenv.
///
/// # Errors
/// An argument cannot be written so that GRUB's loader passes it on unchanged.
pub fn hook_block(trial: &Trial, txn: &str) -> Result<String, String> {
    let none = TxnId::NONE;
    let args = CommandLine::parse(&trial.args);
    let words: Result<Vec<String>, String> = args
        .args()
        .iter()
        .map(|a| loader_word(a.raw()).map(|w| quote(&w)))
        .collect();
    let words = words?.join(" ");
    let preamble: String = trial
        .preamble
        .iter()
        .map(|line| format!("  {line}\n"))
        .collect();
    let initrd = match trial.initrds.as_slice() {
        [] => String::new(),
        files => format!(
            "  initrd {}\n",
            files.iter().map(|f| quote(f)).collect::<Vec<_>>().join(" ")
        ),
    };
    Ok(format!(
        "{HOOK_BEGIN}\n\
         # Boots the entry below once if grubenv says so; `gdr-agent status` tells why it is here.\n\
         load_env gdr_trial\n\
         if [ \"${{gdr_trial}}\" = \"{txn}\" ]; then\n\
         \x20 set gdr_trial={none}\n\
         \x20 set gdr_taken={txn}\n\
         \x20 save_env gdr_trial gdr_taken\n\
         \x20 set gdr_trial=unknown\n\
         \x20 load_env gdr_trial\n\
         \x20 if [ \"${{gdr_trial}}\" = \"{none}\" ]; then set default=gdr-agent-trial; set fallback={fallback}; set boot_once=true; fi\n\
         fi\n\
         menuentry 'gdr-agent trial {txn}' --id gdr-agent-trial --unrestricted {{\n\
         {preamble}\
         \x20 linux {kernel} {words}\n\
         {initrd}\
         }}\n\
         {HOOK_END}\n",
        kernel = quote(&trial.kernel),
        fallback = trial.fallback,
    ))
}

/// custom.cfg without our block; `None` when nothing is left.
#[must_use]
pub fn without_hook(custom: &[u8]) -> Option<Vec<u8>> {
    let find = |needle: &str, from: usize| {
        let hay = custom.get(from..)?;
        hay.windows(needle.len())
            .position(|w| w == needle.as_bytes())
            .map(|at| at + from)
    };
    let Some(begin) = find(HOOK_BEGIN, 0) else {
        return Some(custom.to_vec());
    };
    let end = find(HOOK_END, begin).map_or(custom.len(), |at| {
        (at + HOOK_END.len() + 1).min(custom.len())
    });
    let mut rest = custom.get(..begin).unwrap_or_default().to_vec();
    rest.extend_from_slice(custom.get(end..).unwrap_or_default());
    if rest.is_empty() { None } else { Some(rest) }
}

/// The word that GRUB's loader turns into this argument (lib/cmdline.c: it puts a word with a blank
/// into double quotes and a backslash before `\`, `'` and `"`).
pub(super) fn loader_word(raw: &str) -> Result<String, String> {
    let inner = match raw.strip_prefix('"').and_then(|r| r.strip_suffix('"')) {
        Some(inner) if raw.contains(' ') => inner,
        _ => raw,
    };
    let mut word = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => word.push(
                chars
                    .next()
                    .ok_or_else(|| format!("the argument `{raw}` ends in a backslash"))?,
            ),
            '"' | '\'' => {
                return Err(format!(
                    "GRUB cannot pass on the quotes inside the argument `{raw}`"
                ));
            }
            c => word.push(c),
        }
    }
    Ok(word)
}

/// The armed or disarmed grubenv: both variables are always there and always 16 characters wide.
///
/// # Errors
/// The block is damaged or full.
pub(crate) fn env_with(block: &[u8], trial: &str, taken: &str) -> Result<Vec<u8>, String> {
    let mut env = grubenv::EnvBlock::parse(block).map_err(|e| e.to_string())?;
    env.set("gdr_trial", trial).map_err(|e| e.to_string())?;
    env.set("gdr_taken", taken).map_err(|e| e.to_string())?;
    Ok(env.as_bytes().to_vec())
}

/// grubenv as it was before the two variables were reserved.
///
/// # Errors
/// The block is damaged.
pub(crate) fn env_without(block: &[u8]) -> Result<Vec<u8>, String> {
    let mut env = grubenv::EnvBlock::parse(block).map_err(|e| e.to_string())?;
    env.unset("gdr_trial");
    env.unset("gdr_taken");
    Ok(env.as_bytes().to_vec())
}
