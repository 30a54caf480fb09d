//! `/etc/default/grub` and its drop-ins: what has to be written so that grub-mkconfig makes the
//! command line that was tried.

use grub_config_parser::cmdline::{Arg, CommandLine};
use grub_config_parser::{cfg, defaults};

use super::Input;
use super::cmdline::Edits;
use super::grub::Base;
use super::keep::Keep;
use super::step::Refusal;
use crate::facts::Sh;

/// Our own drop-in; it sorts after those that cloud images ship.
pub const DROP_IN: &str = "/etc/default/grub.d/99-gdr-agent.cfg";

/// The file that grub-mkconfig reads everywhere.
pub(crate) const MAIN: &str = "/etc/default/grub";

const VARIABLES: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];

/// A file, its bytes now, and what they are to be; `None` is "not there".
pub(super) type Change = (String, Option<Vec<u8>>, Option<Vec<u8>>);

type Files = Vec<(String, Vec<u8>)>;

/// The edits of `/etc/default/grub` and its drop-ins that make grub-mkconfig write `target`.
///
/// # Errors
/// Why the menu that would be made is not known to boot it.
pub(super) fn changes(
    input: &Input,
    base: &Base,
    edits: &Edits,
    target: &CommandLine,
) -> Result<Vec<Change>, Refusal> {
    let files = &input.facts.boot.files.defaults;
    let sh = input.facts.boot.files.sh;
    // A commit may find half of itself there; what it leads to is judged by the menu that it makes.
    let judged = input.committing.is_none() && base.keep != Keep::Entries;
    let rest = if judged {
        not_from(files, &base.known_good, sh)?
    } else {
        CommandLine::default()
    };
    let mut edited = without(files, edits.remove.iter().map(String::as_str), sh)?;
    if base.keep == Keep::DropIn {
        // Our drop-in is written anew from the policy: what it says now is not a base to build on.
        edited.retain(|(path, _)| path != DROP_IN);
    } else {
        let dropped = super::cmdline::dropped(input, edits);
        let quoted: Vec<String> = dropped.iter().map(|arg| script_word(arg.raw())).collect();
        let both = dropped
            .iter()
            .map(Arg::raw)
            .chain(quoted.iter().map(String::as_str));
        edited = without(&edited, both, sh)?;
    }
    let mut missing: Vec<String> = Vec::new();
    let mut line = CommandLine::from_args(rest.args().iter().cloned().chain(words(&edited, sh)?));
    for arg in &edits.set {
        let arg = Arg::new(arg);
        let already = line.to_string();
        line.set(&arg);
        if line.to_string() != already {
            missing.push(arg.raw().to_owned());
        }
    }
    if !missing.is_empty() {
        match base.keep {
            Keep::DropIn => {
                let at = edited.iter().position(|(path, _)| {
                    path.as_str() > DROP_IN && path.starts_with("/etc/default/grub.d/")
                });
                let own = (DROP_IN.to_owned(), drop_in_text(&missing).into_bytes());
                edited.insert(at.unwrap_or(edited.len()), own);
            }
            Keep::MainFile | Keep::Entries => add_to_main(&mut edited, &missing, sh)?,
        }
    }
    let after = CommandLine::from_args(rest.args().iter().cloned().chain(words(&edited, sh)?));
    if judged && !after.equivalent(target) {
        return Err(overridden(base.keep, &after, target));
    }
    let old = |path: &str| {
        files
            .iter()
            .find(|(p, _)| p == path)
            .map(|(_, bytes)| bytes.clone())
    };
    let gone = (missing.is_empty() && base.keep == Keep::DropIn)
        .then(|| (DROP_IN.to_owned(), old(DROP_IN), None));
    let changes = edited
        .into_iter()
        .map(|(path, new)| (path.clone(), old(&path), Some(new)))
        .chain(gone);
    Ok(changes.filter(|(_, old, new)| old != new).collect())
}

fn overridden(keep: Keep, after: &CommandLine, target: &CommandLine) -> Refusal {
    let (file, why, fix) = match keep {
        Keep::DropIn => (
            format!("the drop-in {DROP_IN}"),
            "a file that is read later sets the variable anew",
            "rename the later file in /etc/default/grub.d so that it sorts before 99-gdr-agent.cfg",
        ),
        Keep::MainFile | Keep::Entries => (
            format!("the arguments in {MAIN}"),
            "one that stands later says otherwise",
            "take the other value out of GRUB_CMDLINE_LINUX_DEFAULT",
        ),
    };
    Refusal::new(
        "boot.default-overridden",
        format!("with {file} the menu would boot `{after}` and not `{target}`: {why}"),
        fix,
    )
}

/// What the default entry has that these files do not give: what grub-mkconfig itself writes.
///
/// What the menu has must come from these files, or regenerating it would bring in more than the
/// policy's change.
fn not_from(files: &Files, known_good: &CommandLine, sh: Sh) -> Result<CommandLine, Refusal> {
    let mut rest = known_good.clone();
    for word in words(files, sh)? {
        if !rest.contains_exact(&word) {
            return Err(Refusal::new(
                "boot.stale-menu",
                format!(
                    "grub.cfg does not have `{}`, which /etc/default/grub sets: it was edited since the menu was made",
                    word.raw()
                ),
                "run `update-grub` (`grub2-mkconfig -o /boot/grub2/grub.cfg`) and reboot first, so that only the policy's change is tried",
            ));
        }
        rest = without_one(&rest, &word);
    }
    Ok(rest)
}

fn without<'p>(
    files: &Files,
    patterns: impl Iterator<Item = &'p str>,
    sh: Sh,
) -> Result<Files, Refusal> {
    let mut edited = files.clone();
    for pattern in patterns {
        for (path, bytes) in &mut edited {
            for variable in VARIABLES {
                let doc = sh
                    .parse(bytes)
                    .remove_words(variable, pattern)
                    .map_err(|e| computed(path, &e))?;
                *bytes = doc.to_bytes();
            }
        }
    }
    Ok(edited)
}

/// Adds words where a person of this distribution would: SUSE has the second variable, Red Hat the first.
fn add_to_main(files: &mut Files, args: &[String], sh: Sh) -> Result<(), Refusal> {
    let at = match files.iter().position(|(path, _)| path == MAIN) {
        Some(at) => at,
        None => {
            files.insert(0, (MAIN.to_owned(), Vec::new()));
            0
        }
    };
    let Some((path, bytes)) = files.get_mut(at) else {
        return Ok(());
    };
    let doc = sh.parse(bytes);
    let only = [(path.clone(), bytes.clone())];
    let set = sh.evaluate(&only).vars;
    let [first, second] = VARIABLES;
    let variable = if set.contains_key(second) {
        second
    } else {
        first
    };
    let words: Vec<String> = args.iter().map(|arg| script_word(arg)).collect();
    let doc = doc
        .add_words(variable, &words)
        .map_err(|e| computed(path, &e))?;
    *bytes = doc.to_bytes();
    Ok(())
}

fn computed(path: &str, error: &defaults::EditError) -> Refusal {
    Refusal::new(
        "boot.default-computed",
        format!("{path}: {error}"),
        "write the value out, without commands or conditions",
    )
}

/// The arguments that our drop-in gives today; none when that cannot be told.
pub(super) fn own_args(files: &[(String, Vec<u8>)], sh: Sh) -> Vec<Arg> {
    let only: Files = files
        .iter()
        .filter(|(path, _)| path == DROP_IN)
        .cloned()
        .collect();
    // Alone, what it appends to is empty. Refusals belong to the plan proper, not to this question.
    words(&only, sh).unwrap_or_default()
}

/// The arguments that the files give, in the order in which 10_linux writes them.
fn words(files: &Files, sh: Sh) -> Result<Vec<Arg>, Refusal> {
    let evaluation = sh.evaluate(files);
    if let Some(lost) = &evaluation.lost {
        return Err(Refusal::new(
            "boot.default-computed",
            format!(
                "{}:{}: {}: what the menu will boot with is not known",
                lost.file, lost.line, lost.message
            ),
            "write the value out, without commands or conditions",
        ));
    }
    if let Some(abort) = &evaluation.aborts {
        return Err(Refusal::new(
            "boot.default-aborts",
            format!(
                "{}:{}: grub-mkconfig stops here without a word, since the command fails",
                abort.file, abort.line
            ),
            "make the last command of the file succeed (`if ...; then ...; fi` instead of `... && ...`)",
        ));
    }
    let mut args = Vec::new();
    for name in VARIABLES {
        let Some(variable) = evaluation.vars.get(name) else {
            continue;
        };
        let Some(value) = &variable.value else {
            let at = variable
                .assignments
                .last()
                .map_or_else(String::new, |a| format!("{}:{}: ", a.file, a.line));
            return Err(Refusal::new(
                "boot.default-computed",
                match sh {
                    Sh::Unknown => format!(
                        "{at}{name} is computed when the menu is made, or dash and bash do not agree on it and which of them /bin/sh is is not known"
                    ),
                    Sh::Dash | Sh::Bash => format!(
                        "{at}{name} is computed when the menu is made, so what it will boot with is not known"
                    ),
                },
                "write the value out, without commands or conditions",
            ));
        };
        args.extend(as_grub_reads(value).args().iter().cloned());
    }
    Ok(args)
}

/// grub-mkconfig copies the value into a `linux` line as it is, where GRUB takes quotes away and puts
/// variables in.
fn as_grub_reads(value: &str) -> CommandLine {
    let script = format!("menuentry a {{\nlinux /k {value}\n}}\n");
    let menu = crate::facts::whole_menu(script.as_bytes(), &cfg::Context::default());
    let entry = menu.ok().and_then(|menu| menu.entries.into_iter().next());
    entry.map_or_else(|| CommandLine::parse(value), |entry| entry.cmdline)
}

pub(super) fn without_one(line: &CommandLine, word: &Arg) -> CommandLine {
    let mut found = false;
    // The last one: what the files add stands at the end.
    let mut kept: Vec<Arg> = Vec::new();
    for arg in line.args().iter().rev() {
        if !found && arg.raw() == word.raw() {
            found = true;
        } else {
            kept.push(arg.clone());
        }
    }
    kept.reverse();
    CommandLine::from_args(kept)
}

/// Our drop-in. It is sourced by `/bin/sh` after the files before it, so it adds to what they set.
#[must_use]
pub fn drop_in_text(args: &[String]) -> String {
    let words: Vec<String> = args.iter().map(|arg| script_word(arg)).collect();
    format!(
        "# From the policy of gdr-agent: `gdr-agent plan` shows why, `gdr-agent rollback` removes it.\n\
         GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {}\"\n",
        words.join(" ")
    )
}

/// The value goes unescaped into grub.cfg, where `;` and others end a command: those are quoted.
fn script_word(arg: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-+=.,:/@%".contains(&b);
    if arg.bytes().all(plain) {
        arg.to_owned()
    } else {
        format!("'{arg}'")
    }
}
