//! The clock. Wall time is for people; decisions use boot ids and monotonic time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

/// `N` random bytes from the kernel.
///
/// # Errors
/// `getrandom(2)` failed.
pub fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}
