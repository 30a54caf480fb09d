//! The policy of gdr-agent: TOML text in, a validated [`Policy`] out, and no I/O.
//!
//! [`load`] takes policy.toml and its drop-ins and answers with the merged policy and the
//! [`Origins`] of its values, or with every problem of every file at once, each with its place and
//! what to do. A value that has become one of the validated types ([`Selector`], [`KernelArg`],
//! [`PackageName`], ...) holds no quote, blank, control character or shell syntax, so it may go
//! into a file or an argv as it is.
//!
//! The way of a policy: `fragment` reads one file and checks it against `keys`, `value` turns each
//! spanned TOML value into its type, `draft` holds the merge, `check` judges the whole, `load`
//! ties them together and `render` shows what was found.
//!
//! [`Policy`] is also what the journal keeps as JSON; reading it back validates it again.

#![forbid(unsafe_code)]

mod check;
mod defaults;
mod diagnostic;
mod digest;
mod draft;
mod escape;
mod fragment;
mod keys;
mod load;
mod origins;
mod policy;
mod problems;
mod render;
mod schema;
mod source;
mod starter;
mod suggest;
mod types;
mod value;

pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use load::{Loaded, load};
pub use origins::{Origin, Origins};
pub use policy::{
    Acs, Bandwidth, Devices, Fleetlock, Gates, Gdr, Kernel, Peermem, Policy, Reboot, Trial,
    VERSION, Verify,
};
pub use schema::json_schema;
pub use source::{MAX_SIZE, Source};
pub use starter::starter;
pub use types::{
    AcsBit, AcsMethod, AcsScope, AfterFailure, Bake, BusyGpu, CheckGroup, Coordinator, Duration,
    Fallback, FilePath, FleetlockGroup, FleetlockUrl, GdrPath, Invalid, IommuMode, KernelArg,
    ModuleName, PackageName, Peer, PeermemPackage, Selector, TimeZone, WallMessage, Window,
};
