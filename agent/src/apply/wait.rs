//! When to ask again after a refusal.

use std::time::Duration;

/// The first pause; the timer of the unit that asks is no finer.
const FIRST: u64 = 60;
/// The longest pause after a no: somebody else's slot may be free by then.
const LONGEST: u64 = 5 * 60;
/// The longest pause after no answer: whoever is down is not helped by many who ask.
const LONGEST_SILENCE: u64 = 15 * 60;

/// The pause after the `tries`-th refusal in a row: doubled each time, and between half and all of that by
/// `dice`, so that a fleet that was refused at once does not ask at once.
#[must_use]
pub fn pause(tries: u32, silent: bool, dice: u32) -> Duration {
    let longest = if silent { LONGEST_SILENCE } else { LONGEST };
    let doubled = FIRST.saturating_mul(1 << tries.saturating_sub(1).min(10));
    let half = doubled.min(longest) / 2;
    Duration::from_secs(half + (half * u64::from(dice)) / u64::from(u32::MAX))
}

/// Whether it is time again. A time further away than the longest pause comes from a clock that was wrong.
#[must_use]
pub fn due(next: u64, now: u64) -> bool {
    now >= next || next - now > LONGEST_SILENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit_and_differ() {
        let least: Vec<u64> = (1..8).map(|n| pause(n, false, 0).as_secs()).collect();
        assert_eq!(least, [30, 60, 120, 150, 150, 150, 150]);
        let most: Vec<u64> = (1..8).map(|n| pause(n, true, u32::MAX).as_secs()).collect();
        assert_eq!(most, [60, 120, 240, 480, 900, 900, 900]);
        assert_eq!(pause(u32::MAX, true, u32::MAX).as_secs(), 900);
    }

    #[test]
    fn a_clock_that_was_wrong_does_not_stop_the_asking() {
        assert!(!due(100, 99) && due(100, 100) && due(100, 5_000_000));
        assert!(due(4_000_000_000, 1_700_000_000));
    }
}
