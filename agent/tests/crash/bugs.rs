//! Mistakes of a worse agent, made by the one who looks on: they exist in these tests only.

use gdr_agent::sys::Change;

use crate::model::{Event, Id};

/// One mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A new file takes the old one's place without having been synced.
    NoSyncBeforeRename,
    /// It takes the place first and is filled then.
    RenameBeforeWrite,
    /// A directory is never synced.
    NoSyncOfDirectory,
    /// GRUB is told to forget the trial by the system that it boots, not before it boots it.
    DisarmAfterBoot,
    /// As `next_entry` of a stock menu: cleared, but not read back whether that is on the disk.
    NotReadBack,
}

impl Bug {
    pub const ALL: [Self; 5] = [
        Self::NoSyncBeforeRename,
        Self::RenameBeforeWrite,
        Self::NoSyncOfDirectory,
        Self::DisarmAfterBoot,
        Self::NotReadBack,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::NoSyncBeforeRename => "no fsync before rename",
            Self::RenameBeforeWrite => "rename before write",
            Self::NoSyncOfDirectory => "no fsync of the directory",
            Self::DisarmAfterBoot => "disarmed after the boot, not before",
            Self::NotReadBack => "one shot as `next_entry` does it",
        }
    }

    /// The scenario that shows it.
    pub fn shows_in(self) -> &'static str {
        match self {
            // Only where GRUB cannot write does it matter whether it looks.
            Self::NotReadBack => "trial dies, GRUB cannot write",
            _ => "commit",
        }
    }

    /// Is this change left out?
    pub fn forgets(self, change: &Change<'_>) -> bool {
        match change {
            Change::SyncFile { .. } => self == Self::NoSyncBeforeRename,
            Change::SyncDir { .. } => self == Self::NoSyncOfDirectory,
            _ => false,
        }
    }

    /// What is written in the place of these bytes.
    pub fn instead(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(bytes).ok()?;
        if !text.contains("### BEGIN gdr-agent trial ###") {
            return None;
        }
        let kept: Vec<&str> = text
            .lines()
            .filter(|line| match self {
                // GRUB only looks; the hook goes on to boot what is asked for.
                Self::DisarmAfterBoot => {
                    !line.contains("save_env")
                        && !line.trim_start().starts_with("set gdr_")
                        && line.trim() != "load_env gdr_trial"
                        || line.starts_with("load_env")
                }
                Self::NotReadBack => {
                    line.trim() != "set gdr_trial=unknown"
                        && line.trim_end() != "  load_env gdr_trial"
                }
                _ => true,
            })
            .collect();
        let text = match self {
            Self::DisarmAfterBoot => kept.join("\n").replace(
                "if [ \"${gdr_trial}\" = \"0000000000000000\" ]; then",
                "if true; then",
            ),
            Self::NotReadBack => kept.join("\n"),
            _ => return None,
        };
        Some(format!("{text}\n").into_bytes())
    }

    /// The order in which the worse agent would have done it.
    pub fn reorder(self, events: &mut Vec<(usize, Event)>) {
        if self != Self::RenameBeforeWrite {
            return;
        }
        let mut at = 0;
        while at < events.len() {
            let moved = match &events[at].1 {
                Event::Names(_, set) => set
                    .iter()
                    .find_map(|(_, id)| *id)
                    .filter(|_| set.len() == 2),
                _ => None,
            };
            if let Some(first) = moved.and_then(|id| first_named(&events[..at], id)) {
                let event = events.remove(at);
                events.insert(first + 1, event);
            }
            at += 1;
        }
    }
}

/// Where a file that was made here got its first name.
fn first_named(events: &[(usize, Event)], id: Id) -> Option<usize> {
    let new = events
        .iter()
        .position(|(_, e)| matches!(e, Event::New(own, _) if *own == id))?;
    Some(new + 1)
}
