//! Carrying a transaction out: the journal first, then one small executor for each kind of effect.

mod acs;
mod arm;
mod commit;
mod engine;
mod files;
mod menu;
mod modules;
mod packages;
mod reboot;
mod stage;
mod undo;
mod uninstall;
mod wait;

pub use acs::early as early_acs;
pub use arm::read_env;
pub use engine::{Asks, Engine, EngineError, LOCK, boot_id, can_ask};
pub(crate) use modules::why as why_not_loaded;
pub use uninstall::strip_boot_files;
pub use wait::{due, pause};
