//! The kernel command line, as `next_arg()` (Linux `lib/cmdline.c`) splits it and as `parameq()`
//! (`kernel/params.c`) compares names.
//!
//! ```
//! use grub_config_parser::cmdline::{Arg, Change, CommandLine};
//! let mut line = CommandLine::parse("ro console=tty0 intel-iommu=off");
//! assert_eq!(line.set(&Arg::new("intel_iommu=on")), Change::Appended);
//! assert_eq!(line.set(&Arg::new("console=ttyS0")), Change::Appended);
//! assert_eq!(line.set(&Arg::new("ro")), Change::Unchanged);
//! assert_eq!(line.to_string(), "ro console=tty0 intel-iommu=off intel_iommu=on console=ttyS0");
//! ```

mod arg;
mod diff;
mod edit;
mod explain;
mod line;
mod names;
mod split;

pub use arg::Arg;
pub use diff::DiffItem;
pub use edit::{Edit, OpenQuote, edit_line};
pub use explain::{Effect, Explained};
pub use line::{Change, CommandLine};
pub use names::{accumulates, length_limit, names_equal};
pub(crate) use split::arg_ranges;
pub use split::{RawArg, split_bytes};
