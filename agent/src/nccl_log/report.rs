//! The answer for one log, as it is printed.

use std::collections::BTreeMap;

use nccl_log_parser::{CHANNELS, Cell, Count, Gathered, Key, Kind, Log, Tally, Transport};
use schemars::JsonSchema;
use serde::Serialize;

use super::findings::{self, Finding};
use super::verdict::{Verdict, judge};

/// One log.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FileReport {
    /// The path as given; `-` is standard input.
    pub name: String,
    /// As printed, such as `2.26.2+cuda12.8`; the first one if there are several.
    pub nccl_version: Option<String>,
    /// Whether GPUDirect RDMA is engaged.
    pub verdict: Verdict,
    /// Counts of channel records.
    pub channels: Channels,
    /// What each HCA is said to be capable of; one for each net and name.
    pub hcas: Vec<Hca>,
    /// What is wrong, the cause first.
    pub findings: Vec<Finding>,
    /// Network records by channel number.
    pub by_channel: Vec<ByChannel>,
    /// Network records by process and rank, and in it by device.
    pub ranks: Vec<ByRank>,
    /// Network records by device, over all ranks.
    pub devices: Vec<Device>,
    /// All versions that the log names.
    pub nccl_versions: Vec<String>,
    /// The networks that were chosen, by name, and how often.
    pub networks: BTreeMap<String, u64>,
    /// Records that ended in their middle; they decide nothing.
    pub cut_records: u64,
    /// Records that are in `channels` but, for want of room, not in `ranks`.
    pub not_listed: u64,
    /// Bytes read, unpacked.
    pub bytes: u64,
    /// Why the log could not be read to its end; what was read is in the report.
    pub error: Option<String>,
}

/// Counts of channel records, each occurrence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Channels {
    /// NET and COLLNET records.
    pub net: u64,
    /// Those with GPUDirect RDMA.
    pub gdr: u64,
    /// By `NET/IB`, `COLLNET/SHARP`, `P2P`, `SHM`.
    pub by_transport: BTreeMap<String, TransportCount>,
}

/// How many records, and how many with GPUDirect RDMA.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TransportCount {
    /// All.
    pub total: u64,
    /// With GPUDirect RDMA.
    pub gdr: u64,
}

impl From<Count> for TransportCount {
    fn from(count: Count) -> Self {
        Self {
            total: count.total,
            gdr: count.gdr,
        }
    }
}

/// Whether NCCL found that an HCA and its driver can do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Support {
    /// It can.
    Enabled,
    /// It cannot, somewhere.
    Disabled,
}

/// An HCA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Hca {
    /// Such as `mlx5_0`.
    pub name: String,
    /// Such as `IB`; `Socket` has lines of its own.
    pub net: String,
    /// Capability, not use.
    pub gdr: Support,
    /// Its device number in channel records; null if hosts number it differently.
    pub device: Option<u32>,
    /// How many lines say Enabled.
    pub enabled_lines: u64,
    /// How many lines say Disabled.
    pub disabled_lines: u64,
}

/// A channel number over all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ByChannel {
    /// Its number.
    pub channel: u32,
    /// Its records.
    #[serde(flatten)]
    pub count: TransportCount,
    /// Of these records alone.
    pub verdict: Verdict,
}

/// A rank in a process. Ranks are numbered in each communicator: a process may have several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ByRank {
    /// Null if all heads of its records are cut off.
    pub rank: Option<u32>,
    /// The process's host, as in the prefix of its lines.
    pub host: Option<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// Of this rank's network records alone.
    pub verdict: Verdict,
    /// By device.
    pub devices: Vec<RankDevice>,
}

/// What a rank uses a device for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RankDevice {
    /// Such as `NET/IB`.
    pub transport: String,
    /// The number in channel records.
    pub device: u32,
    /// Of these records alone.
    pub verdict: Verdict,
    /// Sends.
    pub send: TransportCount,
    /// Receives.
    pub receive: TransportCount,
    /// Channels with a record with GPUDirect RDMA.
    pub channels_with: Vec<u32>,
    /// Channels with a record without.
    pub channels_without: Vec<u32>,
}

/// A device over all ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Device {
    /// Such as `NET/IB`.
    pub transport: String,
    /// The number in channel records.
    pub device: u32,
    /// The HCA, where the log names it and all hosts number it alike.
    pub name: Option<String>,
    /// Its records.
    #[serde(flatten)]
    pub count: TransportCount,
    /// Of these records alone.
    pub verdict: Verdict,
}

impl FileReport {
    /// What a log says. `error` says why it could not be read to its end.
    #[must_use]
    pub fn of(log: &Log, name: &str, error: Option<String>) -> Self {
        let Log {
            tally,
            gathered,
            cut,
            bytes,
        } = log;
        let verdict = judge(tally, gathered);
        let versions = gathered.versions.clone();
        let first = versions.first().cloned();
        let devices = devices(tally, gathered);
        Self {
            name: name.to_owned(),
            nccl_version: first.or_else(|| gathered.python_version.clone()),
            verdict,
            channels: channels(tally),
            hcas: hcas(gathered),
            findings: findings::find(tally, gathered, verdict),
            by_channel: by_channel(tally),
            ranks: ranks(tally),
            devices,
            nccl_versions: versions,
            networks: gathered
                .networks
                .iter()
                .map(|(name, seen)| (name.clone(), seen.count))
                .collect(),
            cut_records: *cut,
            not_listed: tally.not_listed,
            bytes: *bytes,
            error,
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `NET/IB`, `COLLNET/SHARP`, `P2P`, `SHM`.
pub(super) fn label(transport: &Transport) -> String {
    match transport.kind {
        Kind::Net => format!("NET/{}", text(&transport.name)),
        Kind::CollNet => format!("COLLNET/{}", text(&transport.name)),
        Kind::P2p => "P2P".into(),
        Kind::Shm => "SHM".into(),
    }
}

fn is_net(transport: &Transport) -> bool {
    matches!(transport.kind, Kind::Net | Kind::CollNet)
}

fn channels(tally: &Tally) -> Channels {
    let mut by_transport: BTreeMap<String, TransportCount> = BTreeMap::new();
    for transport in &tally.transports {
        by_transport.insert(label(transport), transport.count.into());
    }
    Channels {
        net: tally.net.total,
        gdr: tally.net.gdr,
        by_transport,
    }
}

fn hcas(gathered: &Gathered) -> Vec<Hca> {
    let hcas = gathered.hcas.iter();
    hcas.map(|((net, name), hca)| Hca {
        name: name.clone(),
        net: net.clone(),
        gdr: match hca.disabled {
            0 => Support::Enabled,
            _ => Support::Disabled,
        },
        device: hca.index,
        enabled_lines: hca.enabled,
        disabled_lines: hca.disabled,
    })
    .collect()
}

fn by_channel(tally: &Tally) -> Vec<ByChannel> {
    (0..)
        .zip(&tally.channels)
        .filter_map(|(channel, count)| {
            Some(ByChannel {
                channel,
                count: (*count).into(),
                verdict: Verdict::of(*count)?,
            })
        })
        .collect()
}

/// The cells of network records, with their transport.
fn net_cells(tally: &Tally) -> impl Iterator<Item = (&Key, &Cell, &Transport)> {
    tally.cells.iter().filter_map(|(key, cell)| {
        let transport = tally.transports.get(key.transport as usize)?;
        is_net(transport).then_some((key, cell, transport))
    })
}

fn ranks(tally: &Tally) -> Vec<ByRank> {
    let mut ranks: BTreeMap<_, (Count, Vec<RankDevice>)> = BTreeMap::new();
    for (key, cell, transport) in net_cells(tally) {
        let (count, devices) = ranks.entry((key.rank, key.process)).or_default();
        let all = cell.send.plus(cell.receive);
        *count = count.plus(all);
        devices.push(RankDevice {
            transport: label(transport),
            device: key.device,
            verdict: Verdict::of(all).unwrap_or(Verdict::Unknown),
            send: cell.send.into(),
            receive: cell.receive.into(),
            channels_with: bits(cell.with),
            channels_without: bits(cell.without),
        });
    }
    let ranks = ranks.into_iter();
    ranks
        .map(|((rank, process), (count, mut devices))| {
            devices.sort_by(|a, b| (&a.transport, a.device).cmp(&(&b.transport, b.device)));
            let process = process.and_then(|i| tally.processes.get(i as usize));
            ByRank {
                rank,
                host: process.map(|p| text(&p.host)),
                pid: process.map(|p| p.pid),
                verdict: Verdict::of(count).unwrap_or(Verdict::Unknown),
                devices,
            }
        })
        .collect()
}

fn bits(set: u64) -> Vec<u32> {
    (0..CHANNELS as u32)
        .filter(|bit| set >> bit & 1 == 1)
        .collect()
}

fn devices(tally: &Tally, gathered: &Gathered) -> Vec<Device> {
    let mut devices: BTreeMap<(String, u32), (Count, Option<String>)> = BTreeMap::new();
    for (key, cell, transport) in net_cells(tally) {
        let (count, _) = devices
            .entry((label(transport), key.device))
            .or_insert_with(|| (Count::default(), name_of(transport, key.device, gathered)));
        *count = count.plus(cell.send.plus(cell.receive));
    }
    let devices = devices.into_iter();
    devices
        .map(|((transport, device), (count, name))| Device {
            transport,
            device,
            name,
            count: count.into(),
            verdict: Verdict::of(count).unwrap_or(Verdict::Unknown),
        })
        .collect()
}

/// The HCA behind a device number: capability lines name the very device, the list of devices only the NIC.
fn name_of(transport: &Transport, device: u32, gathered: &Gathered) -> Option<String> {
    if transport.kind != Kind::Net {
        return None;
    }
    let net = text(&transport.name);
    let mut names = gathered
        .hcas
        .iter()
        .filter(|((of, _), hca)| *of == net && hca.index == Some(device))
        .map(|((_, name), _)| name.clone());
    if let Some(name) = names.next() {
        return names.next().is_none().then_some(name);
    }
    // an HCA that has several numbers
    let varies = gathered
        .hcas
        .iter()
        .any(|((of, _), hca)| *of == net && hca.index.is_none());
    if varies || !net.starts_with("IB") {
        return None;
    }
    gathered.devices.get(&device).cloned().flatten()
}
