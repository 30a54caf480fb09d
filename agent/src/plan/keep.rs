//! Where the arguments of a committed policy are kept, so that every kernel to come has them too.

use grub_config_parser::cfg::Entry;

use crate::facts::Boot;

/// The places that there are. What the default entry is made of decides, not the distribution's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Our own drop-in, which grub-mkconfig reads, and a new menu: Debian, Ubuntu and their kin.
    DropIn,
    /// `/etc/default/grub` itself, and a new menu: SUSE, and Red Hat's without entry files.
    MainFile,
    /// The entry files, and what new ones are made of: EL 8 and later, Fedora.
    Entries,
}

impl Keep {
    pub(super) fn of(entry: &Entry, boot: &Boot) -> Self {
        if entry.bls.is_some() {
            Self::Entries
        } else if boot.reads_drop_ins {
            Self::DropIn
        } else {
            Self::MainFile
        }
    }
}
