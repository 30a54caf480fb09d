//! The clock. Wall time is for people; decisions use boot ids and monotonic time.
//!
//! What is written down, or decided from, is asked of the [`Root`]: tests have clocks of their own there.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::Root;

/// Seconds since 1970, 0 when the clock stands before that.
#[must_use]
pub fn unix_now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs())
}

/// A point in monotonic time.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since the machine booted, suspended time included (`CLOCK_BOOTTIME`).
#[must_use]
pub fn since_boot() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Waits.
pub fn sleep(time: Duration) {
    std::thread::sleep(time);
}

fn random(bytes: &mut [u8]) -> std::io::Result<()> {
    rustix::rand::getrandom(bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(())
}

impl Root {
    /// [`unix_now`], or what the one who looks on says.
    #[must_use]
    pub fn unix_now(&self) -> u64 {
        let other = self.watch.as_ref().and_then(|watch| watch.unix_now());
        other.unwrap_or_else(unix_now)
    }

    /// [`since_boot`], or what the one who looks on says.
    #[must_use]
    pub fn since_boot(&self) -> Duration {
        let other = self.watch.as_ref().and_then(|watch| watch.since_boot());
        other.unwrap_or_else(since_boot)
    }

    /// [`sleep`], or however the one who looks on lets that time pass.
    pub fn sleep(&self, time: Duration) {
        if !self.watch.as_ref().is_some_and(|watch| watch.sleep(time)) {
            sleep(time);
        }
    }

    /// `N` random bytes from the kernel, or from the one who looks on.
    ///
    /// # Errors
    /// `getrandom(2)` failed.
    pub fn random<const N: usize>(&self) -> std::io::Result<[u8; N]> {
        let mut bytes = [0; N];
        if !self
            .watch
            .as_ref()
            .is_some_and(|watch| watch.random(&mut bytes))
        {
            random(&mut bytes)?;
        }
        Ok(bytes)
    }
}
