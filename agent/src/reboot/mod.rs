//! Reboots are asked for, never taken: one trait, one file per coordinator.
//!
//! A coordinator's yes is only a promise. logind, for one, answers before the machine goes down and
//! merely logs a later failure. The proof of a reboot is a changed boot id and nothing else; callers
//! keep that in mind when they read an `Ok(())` here.
//!
//! All D-Bus code of the agent lives in this folder. Nothing outside it sees a D-Bus type.

mod bus;
mod faults;
mod login1;
mod logind;
mod none;
mod refusal;
mod shutdown_kind;
mod unsupported;

pub use bus::Bus;
pub use logind::Logind;
pub use none::NoCoordinator;
pub use refusal::{Fate, Holder, Kind, Refusal};
pub use shutdown_kind::{ShutdownKind, ShutdownUnknown, pending_shutdown};
pub use unsupported::Unsupported;

/// What to ask a coordinator for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Why the machine is to reboot, in a few words for the people logged in to it.
    pub reason: String,
    /// Whether another program's block inhibitor (`systemd-inhibit --what=shutdown`) is a no.
    pub respect_inhibitors: bool,
}

/// Who grants reboots on this machine.
pub trait Coordinator {
    /// The coordinator's name in the policy, such as `logind`.
    fn name(&self) -> &'static str;

    /// Asks whether a reboot could be granted now. Has no side effect.
    ///
    /// Block inhibitors count: a caller whose policy does not respect them may pass over a
    /// [`Refusal::Denied`] that names holders, and no other refusal.
    ///
    /// # Errors
    /// What stands in the way.
    fn can(&self) -> Result<(), Refusal>;

    /// Asks for the reboot and returns once it is granted and recorded.
    ///
    /// `on_granted` runs once, after the coordinator's yes and before the machine can go down. The
    /// caller makes its record of the grant durable in it, within a few seconds: logind waits for
    /// `InhibitDelayMaxSec` (5 s unless configured) and not longer. It never runs after a refusal. If it fails, the
    /// reboot is called back as far as the coordinator allows, and [`Refusal::Record`] says how far
    /// that was.
    ///
    /// # Errors
    /// Why there is no reboot, or none that is recorded.
    fn request(
        &self,
        request: &Request,
        on_granted: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<(), Refusal>;

    /// Calls back what [`request`](Self::request) or anybody else has asked for. `Ok` means that
    /// no reboot is under way any more, not that there was one.
    ///
    /// # Errors
    /// Why the reboot cannot be called back.
    fn cancel(&self) -> Result<(), Refusal>;
}
