//! What must hold for any bytes, per format. The bounded tests and the fuzz targets run the same code:
//! no panic, parse and print give the same bytes, an edit is found again, and all other bytes stay.
#![allow(
    dead_code,
    unused_imports,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "each user takes its own part, and a broken property panics"
)]

mod bls;
mod cfg;
mod cmdline;
mod defaults;
mod grubenv;
mod kernel_cmdline;

pub use bls::bls;
pub use cfg::cfg;
pub use cmdline::cmdline;
pub use defaults::defaults;
pub use grubenv::grubenv;
pub use kernel_cmdline::kernel_cmdline;

use grub_config_parser::cmdline::{Arg, CommandLine, Edit};

/// Arguments to set and to remove: fixed ones, and some that the text itself has.
fn edits(line: &CommandLine) -> (Vec<Arg>, Vec<String>) {
    let own = line.args().iter().filter(|arg| !arg.is_separator()).take(3);
    let mut set = vec![
        Arg::new("iommu=pt"),
        Arg::new("console=ttyS0"),
        Arg::new("gdr.probe"),
    ];
    set.extend(own.clone().cloned());
    let mut remove = vec!["quiet".to_string(), "iommu=pt".to_string()];
    remove.extend(own.map(|arg| arg.name().to_string()));
    remove.retain(|name| !name.is_empty());
    (set, remove)
}

/// True if all bytes of `part` stand in `whole`, in order.
fn subsequence(part: &[u8], whole: &[u8]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|byte| whole.any(|own| own == byte))
}

/// True if `line` says what `edit` asks for.
fn done(line: &CommandLine, edit: &Edit<'_>) -> bool {
    match edit {
        Edit::Set(arg) => line.contains_exact(arg),
        Edit::Remove(pattern) => {
            let pattern = Arg::new(pattern);
            !line.kernel_args().iter().any(|arg| pattern.matches(arg))
        }
    }
}

/// The text that an edit has put in or taken out: bytes that are only in the one or only in the other,
/// between what both begin and end with.
fn change<'a>(before: &'a [u8], after: &'a [u8]) -> (&'a [u8], &'a [u8]) {
    let head = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[head..], &after[head..]);
    let tail = before
        .iter()
        .rev()
        .zip(after.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    (&before[..before.len() - tail], &after[..after.len() - tail])
}

/// Checks that an edit has changed nothing but an argument and the blanks around it.
fn only_an_argument(before: &[u8], after: &[u8], edit: &Edit<'_>) {
    let (gone, new) = change(before, after);
    match edit {
        Edit::Set(arg) => {
            assert!(gone.is_empty(), "{gone:?} is gone");
            let added = new
                .iter()
                .filter(|byte| !byte.is_ascii_whitespace())
                .count();
            let wanted = arg
                .raw()
                .bytes()
                .filter(|byte| !byte.is_ascii_whitespace())
                .count();
            assert_eq!(added, wanted, "{new:?} is new");
        }
        Edit::Remove(_) => assert!(subsequence(after, before), "something is new: {new:?}"),
    }
}
