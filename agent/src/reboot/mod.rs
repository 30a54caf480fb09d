//! Reboots are asked for, never taken: one trait, one file per coordinator.
//!
//! A coordinator's yes is only a promise. logind, for one, answers before the machine goes down and
//! merely logs a later failure. The proof of a reboot is a changed boot id and nothing else; callers
//! keep that in mind when they read an `Ok(())` here.
//!
//! Coordinators are put together from parts that all are [`Coordinator`]s: gates ask the next one
//! only when they are open, a lock is taken before the next one is asked. [`choose`] does that.
//!
//! All network code and all D-Bus code of the agent lives in this folder, but for what answers on the
//! bus, which is `service`. Nothing outside of the two sees a type of either.

mod arm_unit;
pub(crate) mod bus;
mod choose;
mod desk;
mod faults;
mod fleetlock;
mod gates;
mod gpu;
mod hooks;
mod http;
mod login1;
mod logind;
mod node_id;
mod none;
mod proxy;
mod rebootmgr;
mod refusal;
mod sentinel;
mod shutdown_kind;
mod stop;
mod varlink;
mod windows;
mod zone;

pub use arm_unit::{ARM_UNIT, arm_unit_active, start_arm_unit};
pub use bus::Bus;
pub use choose::{asked_apart, choose, release_of};
pub use desk::{Desk, Lock};
pub use fleetlock::FleetLock;
pub use gates::Gated;
pub use gpu::idle as gpus_idle;
pub use hooks::Hooks;
pub use http::{Answer, Http, HttpError, Trust, Wire};
pub use logind::Logind;
pub use node_id::node_id;
pub use none::NoCoordinator;
pub use proxy::Proxies;
pub use rebootmgr::Rebootmgr;
pub use refusal::{Fate, Holder, Kind, Refusal};
pub use sentinel::{KURED, Sentinel};
pub use shutdown_kind::{ShutdownKind, ShutdownUnknown, pending_shutdown};
pub use zone::seconds_east;

/// Gates that may stay closed for hours and are asked before a slot is taken.
pub const LONG_GATES: [&str; 3] = [stop::FILE, stop::URL, windows::NAME];

/// What to ask a coordinator for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Why the machine is to reboot, in a few words for the people logged in to it.
    pub reason: String,
    /// Whether another program's block inhibitor (`systemd-inhibit --what=shutdown`) is a no.
    pub respect_inhibitors: bool,
    /// Whether it is the reboot that leaves a failed trial, rather than the one that tries.
    pub back: bool,
}

/// One question that a request asks, for people who want to know before it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Who is asked: a gate, or a coordinator.
    pub who: String,
    /// What, in words.
    pub asks: String,
    /// Why it says no, none inside where it says yes; none where it was not asked, since asking
    /// changes something.
    pub no: Option<Option<String>>,
}

/// What has become of a reboot that was granted and has not happened yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It is still to be expected; in words, what it waits for.
    Coming(String),
    /// It will not happen: it has to be asked for again. In words, how that is known.
    Gone(String),
}

/// Who grants reboots on this machine.
pub trait Coordinator: std::fmt::Debug {
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
    /// [`Desk::granted`] is called once, after the coordinator's yes and before the machine can go
    /// down. The caller makes its record of the grant durable in it, within a few seconds: logind waits for
    /// `InhibitDelayMaxSec` (5 s unless configured) and not longer. It is never called after a refusal. If it fails, the
    /// reboot is called back as far as the coordinator allows, and [`Refusal::Record`] says how far
    /// that was.
    ///
    /// # Errors
    /// Why there is no reboot, or none that is recorded.
    fn request(&self, request: &Request, desk: &mut dyn Desk) -> Result<(), Refusal>;

    /// Everything that [`request`](Self::request) would ask, in its order. With `ask`, what can be asked
    /// without changing anything is asked.
    fn questions(&self, request: &Request, ask: bool) -> Vec<Question>;

    /// What has become of a reboot that was granted `age` ago. Changes nothing.
    ///
    /// # Errors
    /// It cannot be known now; the reboot is then still to be expected.
    fn poll(&self, age: std::time::Duration) -> Result<Standing, Refusal>;

    /// Whether something that was open when the reboot was granted still is, for one that is granted and comes only
    /// later. Changes nothing.
    ///
    /// # Errors
    /// What has closed since.
    fn objection(&self, _back: bool) -> Result<(), Refusal> {
        Ok(())
    }

    /// Calls back what [`request`](Self::request) has asked for. `Ok` means that nothing of it is under
    /// way any more, not that there was something. What somebody else has asked for stays.
    ///
    /// # Errors
    /// Why the reboot cannot be called back.
    fn cancel(&self) -> Result<(), Refusal>;

    /// Gives back what [`request`](Self::request) took and the reboot itself does not use up: a
    /// lock, a file. Doing it twice is the same as once.
    ///
    /// # Errors
    /// It is not given back; to be asked again later.
    fn release(&self) -> Result<(), Refusal>;
}
