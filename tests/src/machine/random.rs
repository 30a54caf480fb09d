//! Moments that nobody chose, and that can be had again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A generator whose seed is printed and can be given again in `GDR_VM_SEED`. (The mixer is SplitMix64.)
#[derive(Debug, Clone)]
pub struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    /// Seeded from `GDR_VM_SEED`, else from the clock.
    #[must_use]
    pub fn from_env() -> Self {
        let given = std::env::var("GDR_VM_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let clock = || {
            SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |d| d.as_nanos())
        };
        Self::new(given.unwrap_or_else(|| clock() as u64 % 1_000_000))
    }

    /// The same moments for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// What to put into `GDR_VM_SEED` to get the same again.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A moment between nothing and `limit`.
    pub fn below(&mut self, limit: Duration) -> Duration {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        limit.mul_f64((z >> 11) as f64 / (1_u64 << 53) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_moments_and_they_spread_over_the_whole_limit() {
        let limit = Duration::from_secs(100);
        let draw = |mut r: Random| (0..1000).map(|_| r.below(limit)).collect::<Vec<_>>();
        let moments = draw(Random::new(7));
        assert_eq!(moments, draw(Random::new(7)));
        assert_ne!(moments, draw(Random::new(8)));
        for tenth in 0..10 {
            let range = Duration::from_secs(tenth * 10)..Duration::from_secs(tenth * 10 + 10);
            let hits = moments.iter().filter(|m| range.contains(m)).count();
            assert!(
                (60..140).contains(&hits),
                "{hits} of 1000 moments in tenth {tenth}"
            );
        }
    }
}
