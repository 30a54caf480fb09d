//! When reboots may be asked for.

use super::{Invalid, checked_text};
use crate::escape::quote;

checked_text! {
    /// A span of the day, on all or some days of the week: `22:00-06:00`, `Mon-Fri 22:00-06:00`,
    /// `Sat,Sun 00:00-24:00`. One that ends before it begins goes on after midnight, and the day is
    /// that on which it begins.
    Window,
    check_window,
    "A span of the day, on all or some days of the week, as in `22:00-06:00`, `Mon-Fri 22:00-06:00` or `Sat,Sun 00:00-24:00`.",
    "^((Mon|Tue|Wed|Thu|Fri|Sat|Sun)(-(Mon|Tue|Wed|Thu|Fri|Sat|Sun))?(,(Mon|Tue|Wed|Thu|Fri|Sat|Sun)(-(Mon|Tue|Wed|Thu|Fri|Sat|Sun))?)* )?([01][0-9]|2[0-3]):[0-5][0-9]-(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$"
}

checked_text! {
    /// The clock that windows are read on: `UTC`, an offset from UTC such as `+02:00`, or a place whose
    /// clocks it follows in summer and in winter, such as `Europe/Berlin`. It is the same on every node of a
    /// fleet, wherever that is.
    TimeZone,
    check_zone,
    "`UTC`, an offset from UTC such as `+02:00`, or a name of the time zone database such as `Europe/Berlin`.",
    "^(UTC|[+-](0[0-9]|1[0-4]):[0-5][0-9]|[A-Z][A-Za-z_]{0,30}(/[A-Z][A-Za-z0-9_+-]{0,30}){1,2})$"
}

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const DAY: u16 = 24 * 60;

/// A window's parts: one flag for each day from Monday, the first minute, the first minute after it.
struct Parts {
    days: [bool; 7],
    from: u16,
    to: u16,
}

impl Window {
    /// Whether a minute of the week is in it. `day` counts from 0 for Monday, `minute` from midnight.
    pub fn holds(&self, day: u8, minute: u16) -> bool {
        let Ok(parts) = parts(self.as_str()) else {
            return false;
        };
        let on = |day: u8| parts.days.get(usize::from(day % 7)) == Some(&true);
        if parts.from < parts.to {
            on(day) && (parts.from..parts.to).contains(&minute)
        } else {
            (on(day) && minute >= parts.from) || (on(day.wrapping_add(6) % 7) && minute < parts.to)
        }
    }
}

impl TimeZone {
    /// Minutes east of UTC, where that is the same at all times; none for a place.
    pub fn minutes_east(&self) -> Option<i32> {
        if self.as_str() == "UTC" {
            return Some(0);
        }
        offset(self.as_str())
    }

    /// The place, as the time zone database spells it: a path of two or three names, safe to be looked up.
    pub fn place(&self) -> Option<&str> {
        self.minutes_east().is_none().then_some(self.as_str())
    }
}

fn check_window(text: &str) -> Result<(), Invalid> {
    let found = parts(text).map_err(|why| {
        Invalid::new(format!("window {} {why}", quote(text))).help(
            "write it as in \"22:00-06:00\", \"Mon-Fri 22:00-06:00\" or \"Sat,Sun 00:00-24:00\"",
        )
    })?;
    if found.from == found.to {
        return Err(Invalid::new(format!("window {} is empty", quote(text)))
            .help("the whole day is \"00:00-24:00\""));
    }
    Ok(())
}

fn parts(text: &str) -> Result<Parts, String> {
    let (days, hours) = match text.split_once(' ') {
        Some((days, hours)) => (Some(days), hours),
        None => (None, text),
    };
    let (from, to) = hours
        .split_once('-')
        .ok_or("has no hours such as 22:00-06:00")?;
    let from = minute(from)
        .filter(|from| *from < DAY)
        .ok_or("has no time of day at its begin")?;
    let to = minute(to).ok_or("has no time of day at its end")?;
    let mut on = [days.is_none(); 7];
    for item in days.iter().flat_map(|days| days.split(',')) {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let place = |name: &str| {
            let found = DAYS.iter().position(|day| *day == name);
            found.ok_or(format!(
                "has {}, which is no day (Mon, Tue, Wed, Thu, Fri, Sat, Sun)",
                quote(name)
            ))
        };
        let (mut day, last) = (place(first)?, place(last)?);
        loop {
            if let Some(flag) = on.get_mut(day) {
                *flag = true;
            }
            if day == last {
                break;
            }
            day = (day + 1) % 7;
        }
    }
    Ok(Parts { days: on, from, to })
}

/// `HH:MM`, at most 24:00, as minutes.
fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let two = |text: &str| -> Option<u16> {
        let digits = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    let all = hours * 60 + minutes;
    (minutes < 60 && all <= DAY).then_some(all)
}

fn check_zone(text: &str) -> Result<(), Invalid> {
    if text == "UTC" || offset(text).is_some() || is_place(text) {
        return Ok(());
    }
    Err(Invalid::new(format!(
        "{} is not a time zone of a policy",
        quote(text)
    ))
    .help(
        "write \"UTC\", an offset from UTC such as \"+02:00\", or a place such as \"Europe/Berlin\"",
    ))
}

/// `Area/City` or `Area/Region/City`. Names without a slash are left out: `CET` and `EST` mean one thing to people and
/// another, or nothing, to a node. So are `posix/...` and `right/...`, which are the same database twice more.
fn is_place(text: &str) -> bool {
    const LONGEST: usize = 31;
    let name = |name: &str, others: &str| {
        let allowed = |b: u8| b.is_ascii_alphabetic() || others.as_bytes().contains(&b);
        name.len() <= LONGEST
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.bytes().all(allowed)
    };
    let mut parts = text.split('/');
    let area = parts.next().is_some_and(|area| name(area, "_"));
    let places: Vec<&str> = parts.collect();
    area && matches!(places.len(), 1 | 2) && places.iter().all(|place| name(place, "0123456789_+-"))
}

fn offset(text: &str) -> Option<i32> {
    let east = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let all = minute(east.1).filter(|all| *all < 15 * 60)?;
    Some(east.0 * i32::from(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_its_minutes_and_no_others() {
        // (window, day from Monday, minute, inside)
        for (text, day, minute, inside) in [
            ("00:00-24:00", 3, 0, true),
            ("00:00-24:00", 3, 1439, true),
            ("08:00-09:30", 6, 479, false),
            ("08:00-09:30", 6, 480, true),
            ("08:00-09:30", 6, 569, true),
            ("08:00-09:30", 6, 570, false),
            // Over midnight: Friday's goes on into Saturday, Sunday's night does not begin.
            ("Mon-Fri 22:00-06:00", 4, 1320, true),
            ("Mon-Fri 22:00-06:00", 5, 359, true),
            ("Mon-Fri 22:00-06:00", 5, 360, false),
            ("Mon-Fri 22:00-06:00", 5, 1320, false),
            ("Mon-Fri 22:00-06:00", 0, 100, false),
            ("Sun 23:00-01:00", 0, 59, true),
            ("Sun 23:00-01:00", 0, 60, false),
            ("Sat,Sun 00:00-24:00", 5, 700, true),
            ("Sat,Sun 00:00-24:00", 4, 700, false),
            ("Fri-Mon 10:00-11:00", 6, 600, true),
            ("Fri-Mon 10:00-11:00", 1, 600, false),
            ("Wed 10:00-24:00", 3, 0, false),
        ] {
            let window: Window = text.parse().unwrap();
            assert_eq!(
                window.holds(day, minute),
                inside,
                "{text} day {day} minute {minute}"
            );
        }
    }

    #[test]
    fn what_is_no_window_is_refused() {
        for text in [
            "",
            " ",
            "10:00",
            "10:00-",
            "25:00-26:00",
            "24:00-01:00",
            "10:60-11:00",
            "1:00-2:00",
            "10:00-10:00",
            "mon 10:00-11:00",
            "Mon 10:00-11:00 ",
            "Mon- 10:00-11:00",
            "Mon,,Tue 1:00-2:00",
            "10:00 - 11:00",
            "10:00-24:01",
            "+1:00-02:00",
            "Monday 10:00-11:00",
        ] {
            assert!(text.parse::<Window>().is_err(), "{text}");
        }
        for text in [
            "",
            "Z",
            "utc",
            "+2:00",
            "+15:00",
            "02:00",
            "local",
            "CET",
            "/etc/passwd",
            "Europe/",
            "Europe/../../etc/passwd",
            "../Europe/Berlin",
            "Europe//Berlin",
            "/Europe/Berlin",
            "europe/berlin",
            "posix/Europe/Berlin",
            "Europe/Berlin ",
            "Europe/Ber\nlin",
            "Europe/B\u{f6}rlin",
            "America/Argentina/Buenos_Aires/x",
            "Europe/BerlinBerlinBerlinBerlinBerlinBerlin",
            "+02:60",
            "+0a:00",
        ] {
            assert!(text.parse::<TimeZone>().is_err(), "{text}");
        }
        let zone = |text: &str| text.parse::<TimeZone>().unwrap();
        assert_eq!(zone("-03:30").minutes_east(), Some(-210));
        assert_eq!(zone("UTC").minutes_east(), Some(0));
        for text in [
            "Europe/Berlin",
            "America/Argentina/Buenos_Aires",
            "America/Port-au-Prince",
            "Etc/GMT+5",
            "Antarctica/DumontDUrville",
        ] {
            assert_eq!(zone(text).place(), Some(text));
            assert_eq!(zone(text).minutes_east(), None);
        }
        assert_eq!((zone("UTC").place(), zone("+02:00").place()), (None, None));
    }
}
