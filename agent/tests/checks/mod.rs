//! What must hold for any bytes, per format. The bounded tests and the fuzz targets run the same code: no panic, an
//! answer or a reason, nothing in it that commands a terminal, bounded memory, and what is written is read again.
#![allow(
    dead_code,
    unused_imports,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "each user takes its own part, and a broken property panics"
)]

mod capture;
mod fleetlock;
mod journal;
mod kernel_modules;
mod nccl_env;
mod nccl_log;
mod nvidia_smi;
mod packages;
mod pci_config;
mod perftest;
mod policy;

pub use capture::capture;
pub use fleetlock::fleetlock;
pub use journal::journal;
pub use kernel_modules::kernel_modules;
pub use nccl_env::nccl_env;
pub use nccl_log::nccl_log;
pub use nvidia_smi::nvidia_smi;
pub use packages::packages;
pub use pci_config::pci_config;
pub use perftest::perftest;
pub use policy::policy;

use gdr_agent::finding::Finding;

/// Text that is shown to a person: no terminal takes any of it for a command, and it reads the way it stands there.
fn shown(text: &str) {
    let bad = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
    };
    assert!(!text.contains(bad), "{text:?}");
}

/// The same for text of several lines.
fn lines_shown(text: &str) {
    text.split('\n').for_each(shown);
}

/// Everything that a finding shows.
fn finding_shown(finding: &Finding) {
    shown(&finding.subject);
    finding.evidence.iter().for_each(|text| shown(text));
}
