//! The transaction as a state machine: a pure, total function from a state and an event to the
//! next state and the effects to carry out.
//!
//! The caller makes the new state durable before it carries out any effect. Every effect is
//! idempotent, so that after a crash the same effect can be asked for again.

mod event;
mod state;
mod step;
#[cfg(test)]
mod tests;

pub use event::{Boot, Effect, Event, GrubView, Marker};
pub use state::{Budget, Failure, FailureKind, State, Txn, TxnId};
pub use step::step;
