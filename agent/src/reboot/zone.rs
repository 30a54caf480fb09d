//! The clock of a place, from the time zone database of the root: no database of the program's own, which would be
//! large, and old by the time that it is asked.

use gdr_policy::TimeZone;

use crate::sys::Root;

/// Where every distribution's tzdata is, and what images of containers may lack.
const DATABASE: &str = "/usr/share/zoneinfo";
/// A zone with every change since 1880 has 4 KiB.
const MOST: u64 = 64 << 10;

/// Seconds east of UTC at an instant, in seconds since 1970.
///
/// # Errors
/// The place is not in the root's database, or its file cannot be used.
pub fn seconds_east(root: &Root, zone: &TimeZone, at: i64) -> Result<i64, String> {
    let Some(place) = zone.place() else {
        return Ok(60 * i64::from(zone.minutes_east().unwrap_or(0)));
    };
    let path = format!("{DATABASE}/{place}");
    let unusable = |why: String| format!("the time zone {place} is not known: {why}");
    let stat = root.stat(&path).map_err(|e| unusable(e.to_string()))?;
    let Some(stat) = stat else {
        return Err(unusable(format!(
            "there is no {}; install tzdata, or write an offset such as \"+02:00\" as [reboot.gates] time_zone",
            root.outside(&path).display()
        )));
    };
    if stat.size > MOST {
        let shown = root.outside(&path);
        return Err(unusable(format!(
            "{} has {} bytes, which no zone has; reinstall tzdata",
            shown.display(),
            stat.size
        )));
    }
    let bytes = root.read(&path).map_err(|e| unusable(e.to_string()))?;
    let zone = jiff::tz::TimeZone::tzif(place, &bytes).map_err(|e| {
        unusable(format!(
            "{} is no file of the time zone database ({e}); reinstall tzdata",
            root.outside(&path).display()
        ))
    })?;
    let instant = jiff::Timestamp::from_second(at)
        .map_err(|e| format!("the clock of this machine is wrong: {e}"))?;
    Ok(i64::from(zone.to_offset(instant).seconds()))
}
