//! Editing the entries of an existing menu, for images in which grub-mkconfig cannot run.

use grub_config_parser::cfg::{Context, Entry, quote};
use grub_config_parser::cmdline::{Arg, CommandLine};

use super::hook::loader_word;

/// Gives every entry that has the arguments `from` the arguments `to`, and touches no other byte.
///
/// Recovery entries stay as they are: grub-mkconfig gives them no default arguments either.
///
/// # Errors
/// The menu is no GRUB script, or its default entry's arguments do not stand in it literally.
pub(crate) fn edit_menu(
    menu: &[u8],
    from: &CommandLine,
    to: &CommandLine,
) -> Result<Vec<u8>, String> {
    let made = crate::facts::whole_menu(menu, &Context::default())?;
    let (removed, added) = (missing(from, to), missing(to, from));
    let mut edits: Vec<(std::ops::Range<usize>, String)> = Vec::new();
    for entry in &made.entries {
        let Some(line) = &entry.linux_line else {
            continue;
        };
        if is_recovery(entry) || !removed.iter().all(|a| entry.cmdline.contains_exact(a)) {
            continue;
        }
        let end = line.args_span.end;
        // Only what has to change: a variable among the arguments stays one.
        if removed.is_empty() {
            let words: Result<String, String> = added
                .iter()
                .map(|a| Ok(format!(" {}", quote(&loader_word(a.raw())?))))
                .collect();
            edits.push((end..end, words?));
            continue;
        }
        let mut args: Vec<Arg> = entry.cmdline.args().to_vec();
        args.retain(|a| !removed.iter().any(|r| r.raw() == a.raw()));
        args.extend(added.iter().cloned());
        let words: Result<Vec<String>, String> = args
            .iter()
            .map(|a| Ok(quote(&loader_word(a.raw())?)))
            .collect();
        edits.push((line.args_span.clone(), words?.join(" ")));
    }
    if edits.is_empty() {
        return Err("no entry's arguments stand in it literally".to_owned());
    }
    edits.sort_by_key(|(span, _)| span.start);
    edits.dedup_by(|a, b| a.0 == b.0);
    let mut bytes = Vec::new();
    let mut at = 0;
    for (span, text) in edits {
        bytes.extend_from_slice(menu.get(at..span.start).unwrap_or_default());
        bytes.extend_from_slice(text.as_bytes());
        at = span.end;
    }
    bytes.extend_from_slice(menu.get(at..).unwrap_or_default());
    Ok(bytes)
}

/// The arguments of `line` that `other` has less often.
fn missing(line: &CommandLine, other: &CommandLine) -> Vec<Arg> {
    let mut rest: Vec<&str> = other.args().iter().map(Arg::raw).collect();
    let gone = line
        .args()
        .iter()
        .filter(|arg| match rest.iter().position(|r| *r == arg.raw()) {
            Some(at) => {
                rest.remove(at);
                false
            }
            None => true,
        });
    gone.cloned().collect()
}

fn is_recovery(entry: &Entry) -> bool {
    entry
        .cmdline
        .args()
        .iter()
        .any(|a| matches!(a.raw(), "single" | "recovery" | "1" | "s"))
}
