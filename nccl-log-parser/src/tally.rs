//! Counts of channel records, in bounded memory: by transport, by channel, and by process, rank and device.

use std::collections::HashMap;

use crate::record::{Direction, Head, Kind, Record};
use crate::source::{Source, source};

/// Processes, transports and cells that are kept apart; what a log holds beyond them is only counted in all.
const PROCESSES: usize = 1 << 15;
const TRANSPORTS: usize = 64;
const CELLS: usize = 1 << 16;
/// Longer prefixes are not remembered.
const PREFIX: usize = 256;
/// Channels that are told apart; NCCL's own limit is 64 (`MAXCHANNELS`).
pub const CHANNELS: usize = 64;

/// How many records, and how many of them with GPUDirect RDMA.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// All.
    pub total: u64,
    /// With `/GDRDMA`.
    pub gdr: u64,
}

impl Count {
    fn add(&mut self, gdr: bool) {
        self.total += 1;
        self.gdr += u64::from(gdr);
    }

    /// The sum.
    pub fn plus(self, other: Self) -> Self {
        Self {
            total: self.total + other.total,
            gdr: self.gdr + other.gdr,
        }
    }
}

/// What one rank of one process says about one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// Index into [`Tally::processes`]; none where the line does not name its process.
    pub process: Option<u32>,
    /// None where the record's head is cut off.
    pub rank: Option<u32>,
    /// Index into [`Tally::transports`].
    pub transport: u32,
    /// The number in the record.
    pub device: u32,
}

/// The counts of a key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cell {
    /// Sends, and records that name no direction.
    pub send: Count,
    /// Receives.
    pub receive: Count,
    /// Bit n: channel n has a record with GPUDirect RDMA.
    pub with: u64,
    /// Bit n: channel n has a record without.
    pub without: u64,
}

/// A process, by the prefix of its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// As printed.
    pub host: Box<[u8]>,
    /// As printed; a container's own.
    pub pid: u32,
}

/// A kind of transport and the net's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transport {
    /// What it is.
    pub kind: Kind,
    /// The net's name as printed; empty inside a node.
    pub name: Box<[u8]>,
    /// Its records.
    pub count: Count,
}

/// A record that was counted, so that it can be counted again when the next line shows that it was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counted {
    transport: u32,
    channel: Option<u32>,
    direction: Option<Direction>,
    cell: Option<usize>,
}

/// All counts of a file.
#[derive(Debug, Default)]
pub struct Tally {
    /// NET and COLLNET.
    pub net: Count,
    /// In the order of the log.
    pub transports: Vec<Transport>,
    /// NET and COLLNET records by channel.
    pub channels: Vec<Count>,
    /// In the order of the log.
    pub processes: Vec<Process>,
    /// NET and COLLNET records by process, rank and device.
    pub cells: Vec<(Key, Cell)>,
    /// Records beyond the tables' bounds.
    pub not_listed: u64,
    host_index: HashMap<Box<[u8]>, usize>,
    /// By host and pid.
    process_index: HashMap<(usize, u32), u32>,
    cell_index: HashMap<Key, usize>,
    last_process: Option<u32>,
    /// The last prefix of a line, and its process.
    last_prefix: (Vec<u8>, Option<u32>),
    last_cell: Option<usize>,
}

impl Tally {
    /// Counts a record.
    pub(crate) fn add(
        &mut self,
        record: &Record,
        head: Option<&Head>,
        process: Option<u32>,
    ) -> Option<Counted> {
        if matches!(record.kind, Kind::P2p | Kind::Shm) {
            self.add_inside(record.kind);
            return None;
        }
        let Some(index) = self.transport(record.kind, record.name) else {
            self.not_listed += 1;
            self.net.add(record.gdr);
            return None;
        };
        let key = Key {
            process,
            rank: head.map(|head| head.rank),
            transport: index,
            device: record.device,
        };
        let counted = Counted {
            transport: index,
            channel: head.map(|head| head.channel),
            direction: head.and_then(|head| head.direction),
            cell: self.cell(key),
        };
        if counted.cell.is_none() {
            self.not_listed += 1;
        }
        self.count(&counted, |count| count.add(record.gdr), record.gdr);
        Some(counted)
    }

    /// Counts a record of a transport that stays inside a node, by its transport alone.
    pub(crate) fn add_inside(&mut self, kind: Kind) {
        let index = self.transport(kind, b"");
        if let Some(transport) = index.and_then(|i| self.transports.get_mut(i as usize)) {
            transport.count.add(false);
        }
    }

    /// A record was counted without GPUDirect RDMA, and the rest of it says the contrary.
    pub(crate) fn correct(&mut self, counted: &Counted) {
        if let Some((_, cell)) = counted.cell.and_then(|i| self.cells.get_mut(i))
            && let Some(bit) = counted.channel.and_then(bit)
            // another record may have set the bit too, but only where there is one left
            && cell.send.total + cell.receive.total - cell.send.gdr - cell.receive.gdr == 1
        {
            cell.without &= !bit;
        }
        self.count(counted, |count| count.gdr += 1, true);
    }

    fn count(&mut self, counted: &Counted, change: impl Fn(&mut Count), gdr: bool) {
        let Some(transport) = self.transports.get_mut(counted.transport as usize) else {
            return;
        };
        change(&mut transport.count);
        change(&mut self.net);
        let channel = counted.channel.map(|channel| channel as usize);
        if let Some(channel) = channel.filter(|channel| *channel < CHANNELS) {
            if self.channels.len() <= channel {
                self.channels.resize(channel + 1, Count::default());
            }
            if let Some(count) = self.channels.get_mut(channel) {
                change(count);
            }
        }
        if let Some((_, cell)) = counted.cell.and_then(|i| self.cells.get_mut(i)) {
            match counted.direction {
                Some(Direction::Receive) => change(&mut cell.receive),
                Some(Direction::Send) | None => change(&mut cell.send),
            }
            let bit = counted.channel.and_then(bit).unwrap_or_default();
            if gdr {
                cell.with |= bit;
            } else {
                cell.without |= bit;
            }
        }
    }

    fn transport(&mut self, kind: Kind, name: &[u8]) -> Option<u32> {
        let same = |t: &Transport| t.kind == kind && *t.name == *name;
        let index = match self.transports.iter().position(same) {
            Some(index) => index,
            None if self.transports.len() >= TRANSPORTS => return None,
            None => {
                self.transports.push(Transport {
                    kind,
                    name: name.into(),
                    count: Count::default(),
                });
                self.transports.len() - 1
            }
        };
        u32::try_from(index).ok()
    }

    /// The process that printed a line, by what stands before its message. A process prints many records in a row, and
    /// their prefixes are the same.
    pub(crate) fn process_of(&mut self, prefix: &[u8]) -> Option<u32> {
        let (last, process) = &self.last_prefix;
        if last == prefix {
            return *process;
        }
        let process = source(prefix).and_then(|source| self.process(&source));
        if prefix.len() <= PREFIX {
            let (last, of) = &mut self.last_prefix;
            last.clear();
            last.extend_from_slice(prefix);
            *of = process;
        }
        process
    }

    fn process(&mut self, source: &Source) -> Option<u32> {
        let last = self.last_process;
        if let Some(process) = last.and_then(|i| self.processes.get(i as usize))
            && process.pid == source.pid
            && *process.host == *source.host
        {
            return last;
        }
        let host = match self.host_index.get(source.host) {
            Some(host) => *host,
            None if self.host_index.len() >= PROCESSES => return None,
            None => {
                let host = self.host_index.len();
                self.host_index.insert(source.host.into(), host);
                host
            }
        };
        let key = (host, source.pid);
        let index = match self.process_index.get(&key) {
            Some(index) => *index,
            None if self.processes.len() >= PROCESSES => return None,
            None => {
                let index = u32::try_from(self.processes.len()).ok()?;
                self.processes.push(Process {
                    host: source.host.into(),
                    pid: source.pid,
                });
                self.process_index.insert(key, index);
                index
            }
        };
        self.last_process = Some(index);
        Some(index)
    }

    fn cell(&mut self, key: Key) -> Option<usize> {
        if let Some((last, _)) = self.last_cell.and_then(|i| self.cells.get(i))
            && *last == key
        {
            return self.last_cell;
        }
        let index = match self.cell_index.get(&key) {
            Some(index) => *index,
            None if self.cells.len() >= CELLS => return None,
            None => {
                self.cells.push((key, Cell::default()));
                self.cell_index.insert(key, self.cells.len() - 1);
                self.cells.len() - 1
            }
        };
        self.last_cell = Some(index);
        Some(index)
    }
}

fn bit(channel: u32) -> Option<u64> {
    1u64.checked_shl(channel)
}
