//! A small GRUB: runs `grub.cfg` and what it sources, chooses an entry and says what it would hand to
//! the kernel. It knows nothing of the agent: a hook works here only if its text does what it should.

mod commands;
mod env;
mod machine;
mod syntax;

pub use machine::{Booted, Firmware, GrubError, boot};
pub use syntax::{SyntaxError, check};

pub(crate) use env::save as save_env;
