//! The reset that comes even where the process hangs that should make it.
//!
//! A read, a write or a sync on a disk that does not answer any more never returns, and nothing can interrupt it. A
//! thread of its own touches no file: it only looks how long the other one has said nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Root, clock};

/// Resets the machine when nobody has said [`LastResort::alive`] for a while. Ends with the process.
#[derive(Debug)]
pub struct LastResort {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    begun: Instant,
    /// When it was last heard of, and how long it may be silent; milliseconds.
    heard: AtomicU64,
    limit: AtomicU64,
}

impl Shared {
    fn now(&self) -> u64 {
        millis(clock::now().saturating_duration_since(self.begun))
    }

    fn silent_for_too_long(&self) -> bool {
        let silent = self.now().saturating_sub(self.heard.load(Ordering::SeqCst));
        silent > self.limit.load(Ordering::SeqCst)
    }
}

impl LastResort {
    /// Begins to look. Does nothing for a root that is not the running system, or where no thread can be had: then the
    /// unit's `FailureAction=` and the hardware's watchdog are what is left.
    #[must_use]
    pub fn start(root: &Root, limit: Duration) -> Self {
        let live = root.is_live();
        Self::with(limit, move || {
            if live {
                // No sync: it is what may hang.
                let _ = rustix::system::reboot(rustix::system::RebootCommand::Restart);
            }
        })
    }

    fn with(limit: Duration, reset: impl FnOnce() + Send + 'static) -> Self {
        let shared = Arc::new(Shared {
            begun: clock::now(),
            heard: AtomicU64::new(0),
            limit: AtomicU64::new(millis(limit)),
        });
        let seen = Arc::clone(&shared);
        let looking = std::thread::Builder::new().spawn(move || {
            while !seen.silent_for_too_long() {
                clock::sleep(Duration::from_millis(200));
            }
            reset();
        });
        if let Err(e) = looking {
            tracing::error!("nobody looks whether the deadline itself hangs: {e}");
        }
        Self { shared }
    }

    /// Whoever calls this does not hang.
    pub fn alive(&self) {
        self.shared.heard.store(self.shared.now(), Ordering::SeqCst);
    }

    /// From now on that long, whatever hangs.
    pub fn shorten(&self, limit: Duration) {
        self.alive();
        self.shared.limit.store(millis(limit), Ordering::SeqCst);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn it_comes_when_nothing_is_heard_and_not_while_something_is() {
        let (send, came) = channel();
        let resort = LastResort::with(Duration::from_secs(2), move || send.send(()).unwrap());
        for _ in 0..12 {
            resort.alive();
            assert!(came.recv_timeout(Duration::from_millis(250)).is_err());
        }
        came.recv_timeout(LONG).unwrap();
    }

    #[test]
    fn shortened_it_comes_sooner() {
        let (send, came) = channel();
        let resort = LastResort::with(Duration::from_secs(3600), move || send.send(()).unwrap());
        assert!(came.recv_timeout(Duration::from_millis(500)).is_err());
        resort.shorten(Duration::from_millis(100));
        came.recv_timeout(LONG).unwrap();
    }
}
