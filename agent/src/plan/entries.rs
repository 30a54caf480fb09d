//! Boot Loader Specification entries: what has to be written so that each kernel, those to come too,
//! boots with what was tried.
//!
//! EL 9, EL 10 and Fedora have the arguments in each entry; EL 8 has `$kernelopts` there, and the
//! arguments in grubenv. New entries are made of `/etc/kernel/cmdline` (kernel-install(8)), and Fedora's
//! grub2-mkconfig writes the options of all entries anew from `/etc/default/grub`.

use grub_config_parser::bls::Snippet;
use grub_config_parser::cmdline::{Arg, CommandLine, Edit};
use grub_config_parser::grubenv::EnvBlock;
use grub_config_parser::kernel_cmdline::KernelCmdline;

use super::Input;
use super::cmdline::{Edits, dropped};
use super::default_files::Change;
use super::hook::{MARKER, without_extras};
use super::step::Refusal;
use crate::facts::{Boot, KERNEL_CMDLINE};
use crate::machine::TxnId;

/// The variable of EL 8.
const KERNELOPTS: &str = "kernelopts";

/// What has to change.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Files, the default entry's last.
    pub(super) files: Vec<Change>,
    /// grubenv's variable, its old and new value.
    pub(super) env: Option<(String, String, String)>,
}

/// The edits that make the entries, and those to come, boot what was tried.
///
/// # Errors
/// Why the default entry would not boot it.
pub(super) fn changes(
    input: &Input,
    edits: &Edits,
    target: &CommandLine,
    notes: &mut Vec<String>,
) -> Result<Changes, Refusal> {
    let boot = &input.facts.boot;
    let default = default_file(boot);
    let gone = dropped(input, edits);
    let set: Vec<Arg> = edits.set.iter().map(|arg| Arg::new(arg)).collect();
    if let Some(arg) = set.iter().find(|arg| arg.raw().contains(';')) {
        return Err(Refusal::new(
            "boot.entry-uneditable",
            format!(
                "boot entries in files cannot hold `{}`: GRUB takes `;` for the end of a command",
                arg.name()
            ),
            "set `acs.method = \"config-space\"`, or turn ACS off in the firmware setup",
        ));
    }
    let edits = all_edits(edits, &set, &gone);
    let own = default
        .and_then(|at| boot.files.entries.get(at))
        .and_then(|(path, _)| machine_id(path));
    let mut changes = Changes::default();
    let mut last = None;
    let mut by_variable = false;
    for (at, (path, bytes)) in boot.files.entries.iter().enumerate() {
        let snippet = Snippet::parse(path, bytes);
        let Some(options) = snippet.value("options") else {
            continue;
        };
        // The way out stays as it is, and so does what belongs to another system on the same /boot.
        let other = own.is_some_and(|own| machine_id(path).is_some_and(|id| id != own));
        if (is_rescue(path) || other) && default != Some(at) {
            continue;
        }
        if names(&CommandLine::parse(options), KERNELOPTS) {
            by_variable |= default == Some(at) || kernelopts(boot).is_some();
            continue;
        }
        let edited = match edited_entry(&snippet, &edits) {
            Ok(edited) => edited,
            Err(why) if default == Some(at) => return Err(uneditable(path, &why)),
            Err(why) => {
                notes.push(format!(
                    "boot.entry-uneditable: {path} is left as it is: {why}"
                ));
                continue;
            }
        };
        if edited == *bytes {
            continue;
        }
        let change = (path.clone(), Some(bytes.clone()), Some(edited));
        if default == Some(at) {
            last = Some(change);
        } else {
            changes.files.push(change);
        }
    }
    if by_variable {
        changes.env = variable(boot, &edits)?;
    }
    let new_kernels = kernel_cmdline(boot, by_variable, target, &edits)?;
    changes.files.extend(new_kernels);
    changes.files.extend(last);
    judge(boot, &changes, target)?;
    Ok(changes)
}

fn kernelopts(boot: &Boot) -> Option<&String> {
    boot.grubenv.get()?.get(KERNELOPTS)
}

/// The machine id that kernel-install begins an entry's name with.
fn machine_id(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let (id, _) = name.split_once('-')?;
    (id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())).then_some(id)
}

fn all_edits<'e>(edits: &'e Edits, set: &'e [Arg], gone: &'e [Arg]) -> Vec<Edit<'e>> {
    let remove = edits.remove.iter().map(String::as_str);
    remove
        .chain(gone.iter().map(Arg::raw))
        .map(Edit::Remove)
        .chain(set.iter().map(Edit::Set))
        .collect()
}

fn edited_entry(snippet: &Snippet, edits: &[Edit<'_>]) -> Result<Vec<u8>, String> {
    let mut snippet = cleaned(snippet);
    for edit in edits {
        let edited = snippet.edit_options(edit).map_err(|e| e.to_string())?;
        snippet = edited.unwrap_or(snippet);
    }
    Ok(snippet.to_bytes())
}

/// EL 8's variable, its value now and to be.
fn variable(boot: &Boot, edits: &[Edit<'_>]) -> Result<Option<(String, String, String)>, Refusal> {
    let block = boot.files.grubenv.as_deref();
    let reserved = |bytes| super::hook::env_with(bytes, TxnId::NONE, TxnId::NONE).ok();
    // The trial's own two variables are in there when the commit comes.
    let block = block.and_then(|bytes| EnvBlock::parse(&reserved(bytes)?).ok());
    let full = block.is_none() && kernelopts(boot).is_some();
    let found = block.and_then(|block| Some((block.get(KERNELOPTS)?, block)));
    let Some((old, mut block)) = found else {
        if full {
            return Err(Refusal::new(
                "boot.grubenv-full",
                "grubenv has no room for the two variables of a trial".to_owned(),
                "take variables that are not needed out of it: `grub2-editenv list`, `grub2-editenv - unset NAME`",
            ));
        }
        return Err(Refusal::new(
            "boot.kernelopts-missing",
            "boot entries take their arguments from `kernelopts`, and grubenv does not have it"
                .to_owned(),
            "run `grub2-mkconfig -o /etc/grub2.cfg`, which writes it",
        ));
    };
    for edit in edits {
        if let Err(e) = block.edit_argument(KERNELOPTS, edit) {
            let room = e.missing().map_or(String::new(), |bytes| {
                format!(": {bytes} bytes more than there are")
            });
            return Err(Refusal::new(
                "boot.grubenv-full",
                format!("`kernelopts` in grubenv cannot take the policy's arguments: {e}{room}"),
                "take variables that are not needed out of it: `grub2-editenv list`, `grub2-editenv - unset NAME`",
            ));
        }
    }
    let new = block.get(KERNELOPTS).unwrap_or_default();
    Ok((new != old).then(|| (KERNELOPTS.to_owned(), old, new)))
}

/// What kernel-install gives to kernels to come. Without a file it would copy the running kernel's
/// line, which in a trial has the trial's own arguments.
fn kernel_cmdline(
    boot: &Boot,
    by_variable: bool,
    target: &CommandLine,
    edits: &[Edit<'_>],
) -> Result<Option<Change>, Refusal> {
    let [own, _] = KERNEL_CMDLINE;
    let Some((path, bytes)) = &boot.files.kernel_cmdline else {
        // EL 8's new entries refer to the variable.
        let text = format!("{target}\n").into_bytes();
        return Ok((!by_variable).then(|| (own.to_owned(), None, Some(text))));
    };
    let uneditable = |e: &dyn std::fmt::Display| uneditable(path, &e.to_string());
    let mut file = KernelCmdline::parse(bytes).map_err(|e| uneditable(&e))?;
    for edit in edits {
        let edited = file.edit(edit).map_err(|e| uneditable(&e))?;
        file = edited.unwrap_or(file);
    }
    if file.as_bytes() == bytes {
        return Ok(None);
    }
    // The vendor's file is not ours to write: the administrator's comes first.
    let before = (path == own).then(|| bytes.clone());
    Ok(Some((
        own.to_owned(),
        before,
        Some(file.as_bytes().to_vec()),
    )))
}

fn uneditable(path: &str, why: &str) -> Refusal {
    Refusal::new(
        "boot.entry-uneditable",
        format!("{path}: {why}"),
        "correct the file, then run the command again",
    )
}

/// Whether GRUB would boot the target by default if all were written.
fn judge(boot: &Boot, changes: &Changes, target: &CommandLine) -> Result<(), Refusal> {
    let mut then = boot.clone();
    for (path, _, new) in &changes.files {
        let entry = then.files.entries.iter_mut().find(|(p, _)| p == path);
        if let (Some((_, bytes)), Some(new)) = (entry, new) {
            bytes.clone_from(new);
        }
    }
    if let (Some((name, _, new)), Some(env)) = (&changes.env, &mut then.grubenv.value) {
        env.insert(name.clone(), new.clone());
    }
    let menu = then.menu().and_then(Result::ok).unwrap_or_default();
    let entry = menu.default.and_then(|at| menu.entries.get(at));
    let line = entry.map(|e| e.cmdline.clone()).unwrap_or_default();
    if line.equivalent(target) {
        return Ok(());
    }
    let tuned = boot.grubenv.get().and_then(|env| env.get("tuned_params"));
    let (why, fix) = match tuned {
        Some(params) => (
            format!(": tuned adds `{params}`"),
            "change the tuned profile (`tuned-adm active` names it), then run the command again",
        ),
        None => (
            String::new(),
            "look at `gdr-agent cmdline` for where the other value comes from, and take it out there",
        ),
    };
    Err(Refusal::new(
        "boot.entry-overridden",
        format!(
            "with the policy's arguments the default entry would boot `{line}` and not `{target}`{why}"
        ),
        fix,
    ))
}

/// An entry file less these arguments and less what a trial adds, for a kernel that was installed
/// meanwhile; `None` when it has none of them, or cannot be edited.
pub(crate) fn entry_without(bytes: &[u8], args: &[Arg]) -> Option<Vec<u8>> {
    let snippet = Snippet::parse("", bytes);
    let edits: Vec<Edit<'_>> = args.iter().map(|arg| Edit::Remove(arg.raw())).collect();
    let edited = edited_entry(&snippet, &edits).ok()?;
    (edited != bytes).then_some(edited)
}

/// The entry less what a trial adds: a kernel that is installed in a trial boot may have copied it.
fn cleaned(snippet: &Snippet) -> Snippet {
    let line = CommandLine::parse(snippet.value("options").unwrap_or_default());
    if line.last(MARKER).is_some() {
        snippet.with_value("options", &without_extras(&line).to_string())
    } else {
        snippet.clone()
    }
}

/// Whether `$name` is one of the words.
fn names(line: &CommandLine, name: &str) -> bool {
    line.args()
        .iter()
        .any(|arg| arg.raw().strip_prefix('$').is_some_and(|rest| rest == name))
}

/// `<machine id>-0-rescue.conf` (Fedora's 51-dracut-rescue.install).
fn is_rescue(path: &str) -> bool {
    path.contains("-0-rescue")
}

fn default_file(boot: &Boot) -> Option<usize> {
    let menu = boot.menu()?.ok()?;
    menu.entries.get(menu.default?)?.bls
}
