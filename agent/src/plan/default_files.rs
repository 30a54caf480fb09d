//! `/etc/default/grub` and its drop-ins: what has to be written so that grub-mkconfig makes the
//! command line that was tried.

use grub_config_parser::cmdline::{Arg, CommandLine};
use grub_config_parser::defaults;

use super::cmdline::Edits;
use super::grub::Base;
use super::{Input, Plan};

/// Our own drop-in; it sorts after those that cloud images ship.
pub const DROP_IN: &str = "/etc/default/grub.d/99-gdr-agent.cfg";

const VARIABLES: [&str; 2] = ["GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"];

/// A file, its bytes now, and what they are to be; `None` is "not there".
pub(super) type Change = (String, Option<Vec<u8>>, Option<Vec<u8>>);

/// The edits of `/etc/default/grub` and its drop-ins that make grub-mkconfig write `target`.
pub(super) fn changes(
    input: &Input,
    base: &Base,
    edits: &Edits,
    target: &CommandLine,
    plan: &mut Plan,
) -> Option<Vec<Change>> {
    let files = &input.facts.boot.files.defaults;
    let before = words(files, plan)?;
    // What the menu has must come from these files, or regenerating it would bring in more than the policy's change.
    // A commit may find half of itself there; what it leads to is judged by the menu that it makes.
    let committing = input.committing.is_some();
    let mut rest = if committing {
        CommandLine::default()
    } else {
        base.known_good.clone()
    };
    for word in before.iter().filter(|_| !committing) {
        if rest.contains_exact(word) {
            rest = without_one(&rest, word);
        } else {
            plan.refuse(
                "boot.stale-menu",
                format!("grub.cfg does not have `{}`, which /etc/default/grub sets: it was edited since the menu was made", word.raw()),
                "run `update-grub` and reboot first, so that only the policy's change is tried",
            );
            return None;
        }
    }
    let mut edited = files.clone();
    for (path, bytes) in &mut edited {
        for variable in VARIABLES {
            for pattern in &edits.remove {
                match defaults::Document::parse(bytes).remove_words(variable, pattern) {
                    Ok(doc) => *bytes = doc.to_bytes(),
                    Err(e) => {
                        plan.refuse(
                            "boot.default-computed",
                            format!("{path}: {e}"),
                            "write the value out, without commands or conditions",
                        );
                        return None;
                    }
                }
            }
        }
    }
    // Our drop-in is written anew from the policy: what it says now is not a base to build on.
    edited.retain(|(path, _)| path != DROP_IN);
    let mut missing: Vec<String> = Vec::new();
    let mut line = CommandLine::from_args(rest.args().iter().cloned().chain(words(&edited, plan)?));
    for arg in &edits.set {
        let arg = Arg::new(arg);
        let already = line.to_string();
        line.set(&arg);
        if line.to_string() != already {
            missing.push(arg.raw().to_owned());
        }
    }
    if !missing.is_empty() {
        let at = edited.iter().position(|(path, _)| {
            path.as_str() > DROP_IN && path.starts_with("/etc/default/grub.d/")
        });
        let own = (DROP_IN.to_owned(), drop_in_text(&missing).into_bytes());
        edited.insert(at.unwrap_or(edited.len()), own);
    }
    let after = CommandLine::from_args(rest.args().iter().cloned().chain(words(&edited, plan)?));
    if !committing && !after.equivalent(target) {
        plan.refuse(
            "boot.default-overridden",
            format!("with the drop-in {DROP_IN} the menu would boot `{after}` and not `{target}`: a file that is read later sets the variable anew"),
            "rename the later file in /etc/default/grub.d so that it sorts before 99-gdr-agent.cfg",
        );
        return None;
    }
    let old = |path: &str| {
        files
            .iter()
            .find(|(p, _)| p == path)
            .map(|(_, bytes)| bytes.clone())
    };
    let gone = missing
        .is_empty()
        .then(|| (DROP_IN.to_owned(), old(DROP_IN), None));
    let changes = edited
        .into_iter()
        .map(|(path, new)| (path.clone(), old(&path), Some(new)))
        .chain(gone);
    Some(changes.filter(|(_, old, new)| old != new).collect())
}

/// The arguments that our drop-in gives today; none when that cannot be told.
pub(super) fn own_args(files: &[(String, Vec<u8>)]) -> Vec<Arg> {
    let only: Vec<(String, Vec<u8>)> = files
        .iter()
        .filter(|(path, _)| path == DROP_IN)
        .cloned()
        .collect();
    // Alone, what it appends to is empty. Refusals belong to the plan proper, not to this question.
    words(&only, &mut Plan::default()).unwrap_or_default()
}

/// The arguments that the files give, in the order in which 10_linux writes them.
fn words(files: &[(String, Vec<u8>)], plan: &mut Plan) -> Option<Vec<Arg>> {
    let docs: Vec<defaults::Document> = files
        .iter()
        .map(|(_, bytes)| defaults::Document::parse(bytes))
        .collect();
    let named: Vec<defaults::File> = files
        .iter()
        .zip(&docs)
        .map(|((name, _), doc)| defaults::File { name, doc })
        .collect();
    let evaluation = defaults::evaluate(&named);
    if let Some(abort) = &evaluation.aborts {
        plan.refuse(
            "boot.default-aborts",
            format!("{}:{}: grub-mkconfig stops here without a word, since the command fails", abort.file, abort.line),
            "make the last command of the file succeed (`if ...; then ...; fi` instead of `... && ...`)",
        );
        return None;
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
            plan.refuse(
                "boot.default-computed",
                format!("{at}{name} is computed when the menu is made, so what it will boot with is not known"),
                "write the value out, without commands or conditions",
            );
            return None;
        };
        args.extend(CommandLine::parse(value).args().iter().cloned());
    }
    Some(args)
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
