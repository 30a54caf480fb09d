//! Every file under the folders that the agent may touch, to compare before and after.

use std::collections::BTreeMap;

use super::{Error, Machine};

/// Each path under `/etc` and `/boot` with its type, mode, owner, and content's SHA-256 or link target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inventory(BTreeMap<String, String>);

/// One line a path: what it is, a tab, the path.
const SCRIPT: &str = r#"
find /etc /boot -printf '%y %m %U:%G %l\t%p\n'
find /etc /boot -type f -exec sha256sum {} + | sed -E 's/^([0-9a-f]+)  (.*)$/\1\tsha256 of \2/'
"#;

impl Inventory {
    /// Reads it in the machine.
    ///
    /// # Errors
    /// As [`Machine::ok`].
    pub fn take(machine: &mut Machine) -> Result<Self, Error> {
        Ok(Self::parse(&machine.ok(SCRIPT)?))
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        Self(
            lines
                .map(|(what, path)| (path.to_owned(), what.to_owned()))
                .collect(),
        )
    }

    /// How many files there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was found, which means that the reading went wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The paths that are not in `later` as they are here, with both states; empty when all is the same.
    #[must_use]
    pub fn changes(&self, later: &Self) -> Vec<String> {
        let paths: std::collections::BTreeSet<_> = self.0.keys().chain(later.0.keys()).collect();
        let change = |path: &&String| {
            let state = |of: &Self| {
                of.0.get(*path)
                    .map_or_else(|| "absent".to_owned(), Clone::clone)
            };
            let (before, after) = (state(self), state(later));
            (before != after).then(|| format!("{path}: {before} -> {after}"))
        };
        paths.iter().filter_map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_name_content_mode_new_and_gone_and_nothing_else() {
        let before = Inventory::parse(
            "f 644 0:0 \t/etc/same\nf 644 0:0 \t/etc/mode\nf 644 0:0 \t/etc/gone\naa\tsha256 of /etc/same\nbb\tsha256 of /etc/mode",
        );
        let after = Inventory::parse(
            "f 644 0:0 \t/etc/same\nf 600 0:0 \t/etc/mode\nl 777 0:0 x\t/etc/new\nab\tsha256 of /etc/same\nbb\tsha256 of /etc/mode",
        );
        assert_eq!(before.changes(&before), Vec::<String>::new());
        assert_eq!(
            before.changes(&after),
            [
                "/etc/gone: f 644 0:0  -> absent",
                "/etc/mode: f 644 0:0  -> f 600 0:0 ",
                "/etc/new: absent -> l 777 0:0 x",
                "sha256 of /etc/same: aa -> ab",
            ]
        );
    }
}
