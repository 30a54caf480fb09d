//! Why a module was not loaded, in the words of its finding.

use crate::facts::Facts;
use crate::kmod::{Attempt, classify};
use crate::sys::module::NotLoaded;

/// The finding's id, what it was told by, and what to do.
pub(crate) fn why(refused: &NotLoaded, facts: &Facts) -> String {
    let running = facts.running.release.get();
    let mut targets = facts.gdr.targets.iter();
    let file = targets
        .find(|target| Some(&target.release) == running)
        .and_then(|target| target.peermem.get());
    let (cause, evidence) = classify(&Attempt {
        stderr: &refused.stderr,
        log: refused.log.as_deref(),
        stub: file.map(|file| !file.registers),
    });
    format!("{}: {}; {}", cause.id(), evidence.join("; "), cause.fix())
}
