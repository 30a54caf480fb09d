//! How often ACS redirection came back on a port within one boot and was cleared again. The counts
//! outlive reboots, as a counter must.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::pci::Bdf;
use crate::sys::{Root, SysError, clock, lock, write};

/// Where the counts are kept.
pub const REPAIRS: &str = "/var/lib/gdr-agent/acs/repairs.json";
const LOCK: &str = "/var/lib/gdr-agent/acs/repairs.lock";
const VERSION: u32 = 1;

/// One port's count.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Repairs {
    /// How often.
    pub repairs: u64,
    /// When last, in seconds since 1970; null for never.
    pub last: Option<u64>,
}

/// The contents of the file: every port that the agent has cleared, those without a repair too, since
/// a counter that appears with its first event hides that event from a rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    ports: BTreeMap<Bdf, Repairs>,
}

/// Reads the counts; none are kept before the first clearing.
///
/// # Errors
/// The file is there and cannot be used.
pub fn read(root: &Root) -> Result<BTreeMap<Bdf, Repairs>, SysError> {
    let Some(bytes) = root.read_if_there(REPAIRS)? else {
        return Ok(BTreeMap::new());
    };
    let refused = |why: String| SysError::Refused {
        action: "count in",
        path: root.outside(REPAIRS),
        why: format!("{why}; move it away to count from 0"),
    };
    let file: File = serde_json::from_slice(&bytes).map_err(|error| refused(error.to_string()))?;
    match file.version {
        VERSION => Ok(file.ports),
        other => Err(refused(format!(
            "it has version {other}, this agent knows {VERSION}"
        ))),
    }
}

/// Counts what was cleared: each port, and whether its redirection had been cleared before in this
/// boot.
///
/// # Errors
/// The counts cannot be read or written; the registers are what they are all the same.
pub fn count(root: &Root, cleared: &[(Bdf, bool)]) -> Result<(), SysError> {
    // A port is new once, and its bits seldom come back: most boots have nothing to write, nor to wait for.
    let known = read(root)?;
    if cleared
        .iter()
        .all(|(bdf, again)| !again && known.contains_key(bdf))
    {
        return Ok(());
    }
    // The timer and a udev rule may start two units at once.
    let _lock = acquire(root)?;
    let before = read(root)?;
    let mut ports = before.clone();
    for (bdf, again) in cleared {
        let port = ports.entry(*bdf).or_default();
        if *again {
            port.repairs = port.repairs.saturating_add(1);
            port.last = Some(root.unix_now());
        }
    }
    if ports == before {
        return Ok(());
    }
    let file = File {
        version: VERSION,
        ports,
    };
    let mut bytes = serde_json::to_vec_pretty(&file).map_err(|error| SysError::Refused {
        action: "write",
        path: root.outside(REPAIRS),
        why: error.to_string(),
    })?;
    bytes.push(b'\n');
    write::replace(root, REPAIRS, &bytes, None)
}

fn acquire(root: &Root) -> Result<lock::Lock, SysError> {
    let mut tries = 0;
    loop {
        match lock::acquire(root, LOCK, "counting ACS repairs") {
            Err(SysError::Locked { .. }) if tries < 50 => {
                tries += 1;
                clock::sleep(Duration::from_millis(20));
            }
            result => return result,
        }
    }
}
