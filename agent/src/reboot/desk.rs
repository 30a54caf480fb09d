//! Where a coordinator has its steps written down before the next one.

use gdr_policy::{FleetlockGroup, FleetlockUrl};
use serde::{Deserialize, Serialize};

/// What a transaction has to give back to a FleetLock server, whatever its policy says by then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The server's base URL.
    pub url: FleetlockUrl,
    /// The group whose slot it is.
    pub group: FleetlockGroup,
    /// Who this node is to the server.
    pub id: String,
    /// A certificate file beside those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
    /// Whether the server said yes; else it was only asked, and may have said it.
    pub held: bool,
    /// When it was first asked or, once it is held, since when; seconds since 1970.
    pub since: u64,
}

/// Makes a coordinator's steps durable. An error stops the step that it is about.
pub trait Desk {
    /// The lock is about to be asked for (`held` is false), or is held now.
    ///
    /// # Errors
    /// Why it could not be recorded: the lock must then not be asked for, or not be counted on.
    fn lock(&mut self, lock: &Lock) -> Result<(), String>;

    /// The reboot is granted, and the machine has not gone down yet.
    ///
    /// # Errors
    /// Why it could not be recorded: the reboot is to be called back.
    fn granted(&mut self) -> Result<(), String>;
}

/// A desk where only the grant matters.
impl<F: FnMut() -> Result<(), String>> Desk for F {
    fn lock(&mut self, _: &Lock) -> Result<(), String> {
        Ok(())
    }

    fn granted(&mut self) -> Result<(), String> {
        self()
    }
}
