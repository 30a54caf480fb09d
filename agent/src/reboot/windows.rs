//! Windows of the day and the week.
//!
//! What counts is what a clock on the wall shows: an hour that it shows twice when summer time ends is twice in a
//! window, and one that it skips when summer time begins is in none.

use gdr_policy::{TimeZone, Window};

use super::gates::Gate;
use super::zone;
use crate::sys::{Root, clock};

pub(super) const NAME: &str = "window";

/// The policy's windows on the policy's clock.
#[derive(Debug)]
pub(super) struct Windows {
    pub(super) root: Root,
    pub(super) windows: Vec<Window>,
    pub(super) zone: TimeZone,
    /// Seconds from the grant to the reboot: that has to be in a window, too.
    pub(super) delay: u64,
}

impl Gate for Windows {
    fn name(&self) -> &'static str {
        NAME
    }

    fn asks(&self) -> String {
        let windows: Vec<&str> = self.windows.iter().map(Window::as_str).collect();
        format!("whether it is {} ({})", windows.join(" or "), self.zone)
    }

    /// The way back does not wait: the window that the trial began in stands for both of its reboots.
    fn open(&self, back: bool) -> Result<(), String> {
        if back {
            return Ok(());
        }
        self.opens(clock::unix_now())
    }
}

impl Windows {
    /// Whether one is open now, and when a reboot that is granted now comes.
    fn opens(&self, now: u64) -> Result<(), String> {
        let at = |time: u64| self.open_at(i64::try_from(time).unwrap_or(0));
        at(now)?;
        if self.delay == 0 {
            return Ok(());
        }
        at(now.saturating_add(self.delay))
            .map_err(|why| format!("with reboot.delay the reboot would come when {why}"))
    }

    /// Whether one is open at an instant, in seconds since 1970.
    fn open_at(&self, now: i64) -> Result<(), String> {
        let east = zone::seconds_east(&self.root, &self.zone, now)?;
        let (day, minute) = place_in_week(now.saturating_add(east));
        if self.windows.iter().any(|window| window.holds(day, minute)) {
            return Ok(());
        }
        let windows: Vec<&str> = self.windows.iter().map(Window::as_str).collect();
        Err(format!(
            "it is {} {:02}:{:02} ({}), and reboots are for {}",
            ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
                .get(usize::from(day))
                .copied()
                .unwrap_or_default(),
            minute / 60,
            minute % 60,
            self.zone,
            windows.join(", ")
        ))
    }
}

/// The day, from 0 for Monday, and the minute of the day.
fn place_in_week(local: i64) -> (u8, u16) {
    let minutes = local.div_euclid(60);
    // 1970-01-01 was a Thursday.
    let day = (minutes.div_euclid(24 * 60) + 3).rem_euclid(7);
    let minute = minutes.rem_euclid(24 * 60);
    (
        u8::try_from(day).unwrap_or(0),
        u16::try_from(minute).unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The minutes from `from` on, every tenth of `count`, in which a window is open. None without a database.
    fn open(window: &str, from: i64, count: i64) -> Option<Vec<i64>> {
        let windows = Windows {
            root: Root::open(Path::new("/")).unwrap(),
            windows: vec![window.parse().unwrap()],
            zone: "Europe/Berlin".parse().unwrap(),
            delay: 0,
        };
        zone::seconds_east(&windows.root, &windows.zone, from).ok()?;
        let open = |minute: &i64| windows.open_at(from + 60 * minute).is_ok();
        Some(tenth(0..count).filter(open).collect())
    }

    fn tenth(minutes: std::ops::Range<i64>) -> impl Iterator<Item = i64> {
        minutes.step_by(10)
    }

    #[test]
    fn a_reboot_that_is_delayed_comes_in_a_window_too() {
        let windows = |delay| Windows {
            root: Root::open(Path::new("/")).unwrap(),
            windows: vec!["Mon-Sun 22:00-06:00".parse().unwrap()],
            zone: "UTC".parse().unwrap(),
            delay,
        };
        // 2026-12-01 05:50 UTC
        let now = 1_796_104_200;
        assert_eq!(windows(0).opens(now), Ok(()));
        assert_eq!(windows(540).opens(now), Ok(()));
        let late = windows(4 * 3600).opens(now).unwrap_err();
        assert!(
            late.contains("Tue 09:50") && late.contains("reboot.delay"),
            "{late}"
        );
        assert!(
            windows(4 * 3600).opens(now + 3600).is_err(),
            "nor begun outside"
        );
    }

    /// 2026-03-29: at 01:00 UTC the clocks in Berlin go from 02:00 to 03:00. By the calendar, not by code.
    #[test]
    fn an_hour_that_the_clock_skips_is_in_no_window() {
        // From Saturday 21:00 UTC, which is 22:00.
        let from = 1_774_731_600;
        let Some(night) = open("Sat 22:00-06:00", from, 24 * 60) else {
            return;
        };
        // Seven hours instead of eight: until 04:00 UTC, which is 06:00.
        assert_eq!(night, tenth(0..7 * 60).collect::<Vec<_>>());
        assert!(open("02:10-02:40", from, 24 * 60).unwrap().is_empty());
        // Cut by the gap: what is left of it begins at 03:00.
        let rest = open("Sun 02:30-03:30", from, 24 * 60).unwrap();
        assert_eq!(rest, tenth(4 * 60..4 * 60 + 30).collect::<Vec<_>>());
    }

    /// 2026-10-25: at 01:00 UTC the clocks in Berlin go from 03:00 back to 02:00.
    #[test]
    fn an_hour_that_the_clock_shows_twice_is_twice_in_a_window() {
        // From Saturday 20:00 UTC, which is 22:00.
        let from = 1_792_872_000;
        let Some(night) = open("Sat 22:00-06:00", from, 24 * 60) else {
            return;
        };
        // Nine hours, until 05:00 UTC.
        assert_eq!(night, tenth(0..9 * 60).collect::<Vec<_>>());
        // 02:10 is 00:10 UTC and once more 01:10 UTC.
        let twice: Vec<i64> = tenth(250..280).chain(tenth(310..340)).collect();
        assert_eq!(open("02:10-02:40", from, 24 * 60).unwrap(), twice);
        // Midnight to midnight is a day of 25 hours.
        let day = open("Sun 00:00-24:00", from, 48 * 60).unwrap();
        assert_eq!(day, tenth(120..27 * 60).collect::<Vec<_>>());
    }

    /// Expected: `TZ=… date -d @… '+%a %H:%M'` of GNU coreutils.
    #[test]
    fn days_and_minutes_are_those_of_date() {
        assert_eq!(place_in_week(0), (3, 0));
        assert_eq!(place_in_week(1_700_000_000), (1, 22 * 60 + 13));
        assert_eq!(place_in_week(1_709_251_199), (3, 23 * 60 + 59));
        assert_eq!(place_in_week(-60), (2, 23 * 60 + 59));
    }
}
