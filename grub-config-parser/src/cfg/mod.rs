//! `grub.cfg`: GRUB's script language, and the menu that a script makes.
//!
//! [`Script::parse`] accepts what `grub-script-check` accepts. [`Script::menu`] runs the script once,
//! in memory, as GRUB 2.06 would, and then each entry's body.
//!
//! ```
//! use grub_config_parser::cfg::{Context, Script};
//! let script = Script::parse(b"set default=b\nmenuentry A --id a { linux /a quiet; }\n\
//!     menuentry B --id b { linux /b root=/dev/sda1 ro; initrd /i; }\n")?;
//! let menu = script.menu(&Context::default());
//! let entry = &menu.entries[menu.default.unwrap()];
//! assert_eq!(entry.kernel.as_deref(), Some("/b"));
//! assert_eq!(entry.raw, "root=/dev/sda1 ro");
//! # Ok::<(), grub_config_parser::cfg::SyntaxError>(())
//! ```

mod ast;
mod body;
mod close;
mod commands;
mod entry_command;
mod env;
mod error;
mod expand;
mod frames;
mod lex;
mod machine;
mod menu;
mod names;
mod parse;
mod room;
mod script;
mod select;
mod single;
mod table;
mod test_command;
mod traced;
mod word;

pub use body::{Command, LinuxLine, RootSearch, loader_quote};
pub use error::SyntaxError;
pub use lex::{Token, TokenKind, tokens};
pub use menu::{Bls, Context, Entry, Menu};
pub use room::Incomplete;
pub use script::Script;
pub(crate) use single::linux_args;
pub(crate) use traced::{Came, LineTrace};
pub use traced::{SetAt, Setting};
pub use word::quote;
