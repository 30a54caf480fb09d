//! The policy while its files are being merged. A file's value replaces what an earlier file, or
//! the default, said about the same key; lists are replaced as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::defaults;
use crate::policy::{Bandwidth, Fleetlock, Policy};
use crate::types::{AfterFailure, FilePath, FleetlockGroup, FleetlockUrl, Peer};

/// Where a key or a table header was last seen.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Index of the source.
    pub(crate) file: usize,
    /// The key itself.
    pub(crate) key: Range<usize>,
    /// Its value.
    pub(crate) value: Range<usize>,
    /// The valid entries of the value, where it is a list.
    pub(crate) entries: Vec<Range<usize>>,
}

#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) policy: Policy,
    // Optional tables exist only once all files are read, so their keys wait here.
    pub(crate) url: Option<FleetlockUrl>,
    pub(crate) group: Option<FleetlockGroup>,
    pub(crate) ca: Option<FilePath>,
    pub(crate) after_failure: Option<AfterFailure>,
    pub(crate) peer: Option<Peer>,
    pub(crate) min_gbps: Option<f64>,
    /// Keys with a value, of a list at least its valid entries, and where.
    pub(crate) places: BTreeMap<&'static str, Place>,
    /// Tables that a file has opened, even empty ones, and where.
    pub(crate) tables: BTreeMap<String, Place>,
    /// Keys whose value was refused somewhere; what depends on them is not judged.
    pub(crate) failed: BTreeSet<&'static str>,
}

/// An optional table without the key that gives it sense.
pub(crate) struct Missing {
    pub(crate) table: &'static str,
    pub(crate) key: &'static str,
    pub(crate) help: &'static str,
}

impl Draft {
    /// Builds the optional tables. Returns the required keys that they lack.
    pub(crate) fn finish(&mut self) -> Vec<Missing> {
        let mut missing = Vec::new();
        match self.url.take() {
            Some(url) => {
                let group = self.group.take().unwrap_or_else(defaults::fleetlock_group);
                self.policy.reboot.fleetlock = Some(Fleetlock {
                    url,
                    group,
                    ca: self.ca.take(),
                    failed: self.after_failure.take().unwrap_or(AfterFailure::Release),
                });
            }
            None => missing.push(Missing {
                table: "reboot.fleetlock",
                key: "reboot.fleetlock.url",
                help: "add url = \"https://...\", the server's base URL",
            }),
        }
        match self.min_gbps.take() {
            Some(min_gbps) => {
                let peer = self.peer.take().unwrap_or_else(defaults::peer);
                self.policy.verify.bandwidth = Some(Bandwidth { peer, min_gbps });
            }
            None => missing.push(Missing {
                table: "verify.bandwidth",
                key: "verify.bandwidth.min_gbps",
                help: "add min_gbps, the least average bandwidth in Gbit/s",
            }),
        }
        missing.retain(|missing| self.tables.contains_key(missing.table));
        missing
    }
}
