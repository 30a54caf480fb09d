//! Windows of the day and the week.

use gdr_policy::{TimeZone, Window};

use super::gates::Gate;
use crate::sys::{Root, clock};

pub(super) const NAME: &str = "window";

const LOCALTIME: &str = "/etc/localtime";

/// The policy's windows on the policy's clock.
#[derive(Debug)]
pub(super) struct Windows {
    pub(super) root: Root,
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
        let offset = offset(&self.root, &self.zone, now)?;
        let (day, minute) = place_in_week(now + offset);
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

/// Seconds east of UTC at that time.
fn offset(root: &Root, zone: &TimeZone, now: i64) -> Result<i64, String> {
    if let Some(minutes) = zone.offset() {
        return Ok(i64::from(minutes) * 60);
    }
    // Without the file the node's time is UTC (localtime(5)).
    let Some(bytes) = root.read_if_there(LOCALTIME).map_err(|e| e.to_string())? else {
        return Ok(0);
    };
    let zone = jiff::tz::TimeZone::tzif("local", &bytes)
        .map_err(|e| format!("the node's time zone cannot be read from {LOCALTIME}: {e}"))?;
    let now = jiff::Timestamp::from_second(now).map_err(|e| e.to_string())?;
    Ok(i64::from(zone.to_offset(now).seconds()))
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

    #[test]
    fn local_time_is_what_the_file_says() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        let root = Root::open(dir.path()).unwrap();
        let local: TimeZone = "local".parse().unwrap();
        assert_eq!(offset(&root, &local, 0), Ok(0), "no file is UTC");
        assert_eq!(offset(&root, &"-03:30".parse().unwrap(), 0), Ok(-12_600));
        std::fs::write(dir.path().join("etc/localtime"), b"TZif").unwrap();
        assert!(offset(&root, &local, 0).unwrap_err().contains(LOCALTIME));
        // A zone with summer time, written by hand: no transitions, and the rule of POSIX at the end.
        let mut tzif = Vec::new();
        for _ in 0..2 {
            tzif.extend(b"TZif2");
            tzif.extend([0; 15]);
            for count in [0_u32, 0, 0, 0, 1, 4] {
                tzif.extend(count.to_be_bytes());
            }
            tzif.extend([0, 0, 14, 16, 0, 0]);
            tzif.extend(b"CET\0");
        }
        tzif.extend(b"\nCET-1CEST,M3.5.0,M10.5.0/3\n");
        std::fs::write(dir.path().join("etc/localtime"), tzif).unwrap();
        // January and July of 2024.
        assert_eq!(offset(&root, &local, 1_704_067_200), Ok(3600));
        assert_eq!(offset(&root, &local, 1_719_792_000), Ok(7200));
    }
}
