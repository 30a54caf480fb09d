//! Writes logs as each version of NCCL does, from the format strings in its sources (`src/transport/net.cc`,
//! `coll_net.cc`, `graph/topo.cc`, `graph/paths.cc`), with the truth kept beside.

use std::fmt::Write as _;

/// How a version writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Style {
    /// 2.4: `Ring 00 : 0 -> 8 [send] via NET/IB/0`
    Ring,
    /// 2.5 and 2.6: `Ring 00 : 0[0] -> 8[0] ...`
    RingDevice,
    /// 2.7 to 2.11: `Channel 00 : 0[1b000] -> 8[1b000] ...`
    BusId,
    /// 2.12 to 2.18.1: `Channel 00/0 : ...`, and PXN.
    Connection,
    /// 2.18.3 and later: a device number in brackets.
    Device,
    /// 2.26 and later: `/GDRDMA(PCI)`.
    Pci,
    /// 2.31: `/flush=`.
    Flush,
    /// The ROCm fork.
    Rccl,
}

pub const STYLES: [(Style, &str); 12] = [
    (Style::Ring, "2.4.8+cuda10.1"),
    (Style::RingDevice, "2.6.4+cuda10.2"),
    (Style::BusId, "2.7.8+cuda10.2"),
    (Style::BusId, "2.11.4+cuda11.6"),
    (Style::Connection, "2.12.12+cuda11.7"),
    (Style::Connection, "2.18.1+cuda12.1"),
    (Style::Device, "2.18.3+cuda12.2"),
    (Style::Device, "2.22.3+cuda12.5"),
    (Style::Pci, "2.26.2+cuda12.2"),
    (Style::Pci, "2.30.7+cuda13.0"),
    (Style::Flush, "2.31.1+cuda13.0"),
    (Style::Rccl, "2.18.6+hip6.2"),
];

/// One network channel record.
#[derive(Debug, Clone)]
pub struct Edge {
    pub channel: u32,
    pub from: u32,
    pub to: u32,
    pub send: bool,
    pub net: &'static str,
    pub device: u32,
    pub gdr: bool,
    pub shared: bool,
    pub proxy: Option<u32>,
}

impl Edge {
    /// The rank that prints it.
    pub fn rank(&self) -> u32 {
        if self.send { self.from } else { self.to }
    }

    /// As this version prints it, without the prefix.
    pub fn record(&self, style: Style) -> String {
        let Self {
            channel,
            from,
            to,
            net,
            device,
            ..
        } = self;
        let bus = |rank: u32| format!("{:x}000", 0x1b + rank % 8 * 8);
        let local = |rank: u32| (rank % 8).to_string();
        let end = |rank: u32| match style {
            Style::Ring => rank.to_string(),
            Style::RingDevice | Style::Device | Style::Pci | Style::Flush => {
                format!("{rank}[{}]", local(rank))
            }
            Style::BusId | Style::Connection | Style::Rccl => format!("{rank}[{}]", bus(rank)),
        };
        let mut text = match style {
            Style::Ring | Style::RingDevice => format!("Ring {channel:02} : "),
            Style::BusId => format!("Channel {channel:02} : "),
            _ => format!("Channel {channel:02}/{} : ", channel % 2),
        };
        let way = if self.send { "send" } else { "receive" };
        let _ = write!(
            text,
            "{} -> {} [{way}] via NET/{net}/{device}",
            end(*from),
            end(*to)
        );
        if let Some(proxy) = self.proxy
            && self.send
            && style >= Style::Connection
        {
            let _ = write!(text, "({proxy})");
        }
        if self.gdr {
            text.push_str("/GDRDMA");
            if matches!(style, Style::Pci | Style::Flush) && channel % 3 == 0 {
                text.push_str("(PCI)");
            }
        }
        if self.shared && style >= Style::BusId {
            text.push_str("/Shared");
        }
        if style == Style::Flush && !self.send {
            text.push_str("/flush=GDRCOPY");
        }
        if style == Style::Rccl {
            text.push_str(" comm 0x55d0c8a3b2f0 nRanks 16");
        }
        text
    }
}

/// What launchers put before a line.
pub const PREFIXES: [&str; 12] = [
    "",
    "[1,0]<stdout>:",
    "[1,12]<stderr>: ",
    "0: ",
    "node01: ",
    "192.0.2.7: ",
    "[rank3]: ",
    "[default0]:",
    "\x1b[36m(RayWorkerVllm pid=4095, ip=192.0.2.2)\x1b[0m ",
    "2025-05-16T16:39:51.208-07:00 | ",
    "2025-05-16T16:39:51.208123456Z stdout F ",
    "[2025-07-22 17:56:10] ",
];

/// `HOST:PID:TID [DEV] NCCL INFO `
pub fn source(rank: u32) -> String {
    let (host, device) = (rank / 8, rank % 8);
    format!(
        "node-{host:02}.example:{}:{} [{device}] NCCL INFO ",
        1000 + rank,
        5000 + rank
    )
}
