//! The shell that grub-mkconfig runs in, and with it what it makes of its files.

use grub_config_parser::defaults::{Document, Evaluation, File, Kind, Shell, evaluate_for};

use crate::sys::Root;

/// What `/bin/sh` is, as far as its links say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sh {
    /// dash, as on Debian and Ubuntu.
    Dash,
    /// bash, as on EL, Fedora and SUSE.
    Bash,
    /// Another shell, or the link cannot be read: only what both shells agree on counts.
    #[default]
    Unknown,
}

/// How many links are followed.
const LINKS: usize = 8;

pub(super) fn sh(root: &Root) -> Sh {
    let mut path = "/bin/sh".to_owned();
    for _ in 0..LINKS {
        let Ok(Some(target)) = root.link(&path) else {
            break;
        };
        let (dir, _) = path.rsplit_once('/').unwrap_or_default();
        path = if target.starts_with('/') {
            target
        } else {
            format!("{dir}/{target}")
        };
        match path.rsplit('/').next() {
            Some("dash") => return Sh::Dash,
            Some("bash") => return Sh::Bash,
            _ => {}
        }
    }
    Sh::Unknown
}

impl Sh {
    /// Reads a file that is to be edited. What is edited for an unknown shell has to be judged by
    /// [`Sh::evaluate`].
    #[must_use]
    pub fn parse(self, bytes: &[u8]) -> Document {
        Document::parse_for(
            bytes,
            match self {
                Self::Bash => Shell::Bash,
                Self::Dash | Self::Unknown => Shell::Dash,
            },
        )
    }

    /// What grub-mkconfig gets from these files, sourced one after the other.
    #[must_use]
    pub fn evaluate(self, files: &[(String, Vec<u8>)]) -> Evaluation {
        let docs: Vec<Document> = files.iter().map(|(_, bytes)| self.parse(bytes)).collect();
        let named: Vec<File<'_>> = files
            .iter()
            .zip(&docs)
            .map(|((name, _), doc)| File { name, doc })
            .collect();
        match self {
            Self::Dash => evaluate_for(&named, Shell::Dash),
            Self::Bash => evaluate_for(&named, Shell::Bash),
            Self::Unknown => agreed(
                evaluate_for(&named, Shell::Dash),
                evaluate_for(&named, Shell::Bash),
            ),
        }
    }
}

/// What two shells agree on; all else is computed.
fn agreed(mut one: Evaluation, mut other: Evaluation) -> Evaluation {
    let at = |e: &Evaluation| e.aborts.as_ref().map(|a| (a.file.clone(), a.line));
    if at(&one) != at(&other) {
        one.lost = one.aborts.take().or(other.aborts.take());
        if let Some(lost) = &mut one.lost {
            lost.message =
                "one shell stops here and another does not, and which of them /bin/sh is \
                            is not known"
                    .to_owned();
        }
    }
    one.lost = one.lost.or(other.lost);
    for (name, variable) in other.vars {
        let value = variable.value.clone();
        let own = one.vars.entry(name).or_insert_with(|| {
            let mut variable = variable;
            variable.value = None;
            variable
        });
        if own.value != value {
            own.value = None;
        }
    }
    let lost = one.lost.is_some();
    for variable in one.vars.values_mut() {
        if lost || variable.value.is_none() {
            variable.value = None;
            variable.kind = Kind::Computed;
            variable.pieces.clear();
        }
    }
    one
}
