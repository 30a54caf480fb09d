//! Windows of the day and the week.

use gdr_policy::{TimeZone, Window};

use super::gates::Gate;
use crate::sys::clock;

pub(super) const NAME: &str = "window";

/// The policy's windows on the policy's clock.
#[derive(Debug)]
pub(super) struct Windows {
    pub(super) windows: Vec<Window>,
    pub(super) zone: TimeZone,
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
        let now = i64::try_from(clock::unix_now()).unwrap_or(0);
        let (day, minute) = place_in_week(now + 60 * i64::from(self.zone.minutes_east()));
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
    use super::*;

    /// Expected: `TZ=… date -d @… '+%a %H:%M'` of GNU coreutils.
    #[test]
    fn days_and_minutes_are_those_of_date() {
        assert_eq!(place_in_week(0), (3, 0));
        assert_eq!(place_in_week(1_700_000_000), (1, 22 * 60 + 13));
        assert_eq!(place_in_week(1_709_251_199), (3, 23 * 60 + 59));
        assert_eq!(place_in_week(-60), (2, 23 * 60 + 59));
    }
}
