//! What came of it.

use std::collections::BTreeMap;

use crate::recover::{End, counted};

/// What came of a scenario's points.
#[derive(Debug, Default)]
pub struct Tally {
    /// Points between two changes.
    pub points: usize,
    /// What was on the disks at those, in different states; and how many of them were tried.
    pub disks: usize,
    pub tried: usize,
    /// Of those tried, where GRUB read other files below /boot than Linux.
    pub stale: usize,
    pub ends: BTreeMap<End, usize>,
    pub faults: Vec<String>,
    pub seconds: f64,
}

/// The head of the table that [`Tally::row`] makes.
pub const HEAD: &str = "| scenario | points | different disks | tried | GRUB's view is not Linux's | ended | lost nodes |\n|---|---|---|---|---|---|---|";

impl Tally {
    pub fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {:.1} s",
            self.points,
            self.disks,
            self.tried,
            self.stale,
            counted(&self.ends),
            self.faults.len(),
            self.seconds,
        )
    }
}
