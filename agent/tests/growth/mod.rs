//! Time against size, for readers that must not be slow on any input.

use std::time::Instant;

/// Ten times as many repetitions of `unit` may take `work` at most 40 times as long.
pub fn is_bounded(unit: &[u8], few: usize, work: impl Fn(&[u8])) {
    let once = |count: usize| {
        let bytes = unit.repeat(count);
        let start = Instant::now();
        work(&bytes);
        start.elapsed().as_secs_f64()
    };
    // the better of two: other programs run here too
    let time = |count: usize| once(count).min(once(count));
    let base = time(few).max(0.05);
    assert!(
        time(few * 10) < base * 40.0,
        "{:?}",
        String::from_utf8_lossy(unit)
    );
}
