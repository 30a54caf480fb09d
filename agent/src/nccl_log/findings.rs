//! What is wrong, with the lines that show it and what to do. Ids stay the same for ever.

use nccl_log_parser::{Count, Env, Gathered, Kind, Seen, Tally, Transport, Trouble};
use schemars::JsonSchema;
use serde::Serialize;

use super::advice;
use super::distance::{name as distance_name, numbers};
use super::evidence::Evidence;
use super::verdict::{Verdict, socket_chosen};

/// One thing that is wrong, or that the log lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// A stable word with dots.
    pub id: String,
    /// What it means, in one sentence.
    pub summary: String,
    /// The first lines that show it.
    pub evidence: Vec<Evidence>,
    /// How many lines show it.
    pub count: u64,
    /// What to do.
    pub fix: String,
}

impl Finding {
    pub(super) fn new(
        id: &str,
        summary: impl Into<String>,
        seen: &Seen,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            id: id.to_owned(),
            summary: summary.into(),
            evidence: seen.first.iter().map(Evidence::from).collect(),
            count: seen.count,
            fix: fix.into(),
        }
    }
}

/// All findings of a log, causes before what follows from them.
pub(super) fn find(tally: &Tally, gathered: &Gathered, verdict: Verdict) -> Vec<Finding> {
    let mut all = Vec::new();
    environment(&mut all, gathered, verdict);
    network(&mut all, tally, gathered);
    support(&mut all, gathered, verdict);
    distances(&mut all, gathered, verdict);
    troubles(&mut all, gathered);
    completions(&mut all, gathered);
    channels(&mut all, tally, gathered, verdict);
    missing(&mut all, gathered, verdict);
    all
}

fn lacking(verdict: Verdict) -> bool {
    !matches!(verdict, Verdict::Engaged | Verdict::NotApplicable)
}

fn environment(all: &mut Vec<Finding>, gathered: &Gathered, verdict: Verdict) {
    let mut of = |id: &str, name: &str, bad: &dyn Fn(&str) -> bool, what: &str, fix: &str| {
        for Env { value, seen } in gathered.values(name) {
            if bad(value) {
                all.push(Finding::new(
                    id,
                    format!("{name}={value} {what}"),
                    seen,
                    fix,
                ));
            }
        }
    };
    let off = |value: &str| !matches!(value, "0" | "");
    of(
        "nccl.env-net-disabled",
        "NCCL_IB_DISABLE",
        &off,
        "turns RDMA off: NCCL uses sockets, which have no GPUDirect",
        advice::UNSET,
    );
    let socket = |value: &str| value.eq_ignore_ascii_case("socket");
    of(
        "nccl.env-net-disabled",
        "NCCL_NET",
        &socket,
        "chooses sockets, which have no GPUDirect",
        advice::UNSET,
    );
    let never = |value: &str| matches!(value, "0" | "LOC" | "NVL" | "NVB");
    of(
        "nccl.env-gdr-level",
        "NCCL_NET_GDR_LEVEL",
        &never,
        "turns GPUDirect RDMA off: no NIC is that near to a GPU",
        advice::LEVEL,
    );
    if lacking(verdict) {
        let near = |value: &str| matches!(value, "1" | "PIX");
        of(
            "nccl.env-gdr-level",
            "NCCL_NET_GDR_LEVEL",
            &near,
            "allows it below one PCIe switch only, less than NCCL's own choice",
            advice::LEVEL,
        );
    }
    let zero = |value: &str| value == "0";
    of(
        "nccl.env-gdr-read",
        "NCCL_NET_GDR_READ",
        &zero,
        "turns it off for sends: the NIC may not read GPU memory",
        advice::UNSET,
    );
    if gathered.hcas.values().any(|hca| hca.disabled > 0) {
        of(
            "nccl.env-dmabuf-disabled",
            "NCCL_DMABUF_ENABLE",
            &zero,
            "leaves nvidia-peermem as the only way to GPU memory",
            advice::UNSET,
        );
    }
    let level_set = all.iter().any(|f| f.id == "nccl.env-gdr-level");
    let distances = &gathered.distances;
    if distances.level_zero && distances.disabled.count > 0 && !level_set {
        all.push(Finding::new(
            "nccl.env-gdr-level",
            "the level that distances are held against is 0 (LOC): GPUDirect RDMA is turned off",
            &distances.disabled,
            advice::LEVEL,
        ));
    }
}

fn network(all: &mut Vec<Finding>, tally: &Tally, gathered: &Gathered) {
    let trouble = |trouble| gathered.troubles.get(&trouble);
    if let Some(seen) = trouble(Trouble::NoVerbs) {
        all.push(Finding::new(
            "nccl.no-libibverbs",
            "the verbs library could not be opened: NCCL sees no RDMA device",
            seen,
            advice::VERBS,
        ));
    }
    if let Some(seen) = trouble(Trouble::EfaEmpty) {
        all.push(Finding::new(
            "nccl.efa-no-device",
            "libfabric's efa provider found no device",
            seen,
            advice::EFA,
        ));
    }
    if let Some(seen) = trouble(Trouble::OfiDisabled) {
        all.push(Finding::new(
            "nccl.ofi-gdr-disabled",
            "the OFI plugin gave GPUDirect up",
            seen,
            advice::OFI,
        ));
    }
    if gathered.no_device.count > 0 {
        all.push(Finding::new(
            "nccl.no-rdma-device",
            "NCCL found no RDMA device",
            &gathered.no_device,
            advice::NO_DEVICE,
        ));
    }
    sockets(all, tally, gathered);
}

/// Chosen, named by channel records, or the only net whose devices are listed.
fn sockets(all: &mut Vec<Finding>, tally: &Tally, gathered: &Gathered) {
    let is_socket = |t: &&Transport| t.kind == Kind::Net && *t.name == *b"Socket";
    let records = tally.transports.iter().find(is_socket);
    let records = records.map_or(0, |t| t.count.total);
    let mut seen = Seen::default();
    if let Some(chosen) = gathered.networks.get("Socket") {
        seen = chosen.clone();
    } else if socket_chosen(gathered) {
        seen = gathered.socket_using.clone();
    } else if records > 0 {
        seen.count = records;
    } else {
        let mut lines = gathered.hcas.iter().filter(|((net, _), _)| net == "Socket");
        let Some((_, hca)) = lines.next() else {
            return;
        };
        seen = hca.seen.clone();
    }
    all.push(Finding::new(
        "nccl.socket-fallback",
        "NCCL uses sockets: every byte goes through host memory and the kernel's TCP",
        &seen,
        advice::SOCKET,
    ));
}

fn support(all: &mut Vec<Finding>, gathered: &Gathered, verdict: Verdict) {
    let mut seen = Seen::default();
    let mut names = Vec::new();
    for ((net, name), hca) in &gathered.hcas {
        if net != "Socket" && hca.disabled > 0 {
            names.push(name.as_str());
            seen.count += hca.disabled;
            seen.first.extend(hca.seen.first.iter().take(1).cloned());
        }
    }
    seen.first.truncate(3);
    if let Some(more) = gathered.troubles.get(&Trouble::NoPeerMemory) {
        seen.count += more.count;
        seen.first.extend(more.first.iter().take(1).cloned());
    }
    if seen.count == 0 || verdict == Verdict::Engaged {
        return;
    }
    let shown = names.len().min(8);
    let mut list = names.get(..shown).unwrap_or_default().join(", ");
    if shown < names.len() {
        list.push_str(", ...");
    }
    let version = gathered
        .versions
        .first()
        .or(gathered.python_version.as_ref());
    let (id, why, fix) = match version.and_then(|v| numbers(v)) {
        Some((2, minor, _)) if minor < 23 && gathered.dma_buf == 0 => (
            "nccl.too-old-for-peermem",
            "this NCCL looks for nvidia-peermem only in /sys/kernel/mm/memory_peers, which many kernels do not have; 2.23 and later see the module itself",
            advice::TOO_OLD,
        ),
        _ => (
            "nccl.no-kernel-path",
            "neither nvidia-peermem nor DMA-BUF can be used with it",
            advice::NO_PATH,
        ),
    };
    let what = if list.is_empty() {
        "the NICs".to_owned()
    } else {
        list
    };
    all.push(Finding::new(
        id,
        format!("NCCL found {what} not capable of GPUDirect RDMA: {why}"),
        &seen,
        fix,
    ));
}

fn distances(all: &mut Vec<Finding>, gathered: &Gathered, verdict: Verdict) {
    let distances = &gathered.distances;
    // far pairs are normal on a node where each GPU has its own NIC
    if distances.disabled.count == 0 || distances.level_zero || !lacking(verdict) {
        return;
    }
    let Some((distance, level)) = distances.farthest else {
        return;
    };
    let version = gathered.versions.first().and_then(|v| numbers(v));
    let named = |number| match distance_name(version, number) {
        Some(name) => format!("{number} ({name})"),
        None => number.to_string(),
    };
    let summary = format!(
        "{} of {} GPU-NIC pairs are farther apart than NCCL allows: distance {}, allowed {}",
        distances.disabled.count,
        distances.disabled.count + distances.enabled,
        named(distance),
        named(level),
    );
    all.push(Finding::new(
        "path.far",
        summary,
        &distances.disabled,
        advice::FAR,
    ));
}

fn troubles(all: &mut Vec<Finding>, gathered: &Gathered) {
    for (trouble, id, what, fix) in [
        (
            Trouble::Registration,
            "nccl.registration-failed",
            "memory could not be registered with the NIC: the job cannot use what the channels chose",
            advice::REGISTRATION,
        ),
        (
            Trouble::TopologyFile,
            "nccl.topology-mismatch",
            "the topology file names a NIC that the node does not have under that name",
            advice::TOPOLOGY,
        ),
        (
            Trouble::IommuPt,
            "nccl.iommu-not-passthrough",
            "the kernel command line lacks iommu=pt",
            advice::IOMMU,
        ),
    ] {
        if let Some(seen) = gathered.troubles.get(&trouble) {
            all.push(Finding::new(id, what, seen, fix));
        }
    }
}

/// `ibv_wc_status` (rdma-core `libibverbs/verbs.h`).
fn completions(all: &mut Vec<Finding>, gathered: &Gathered) {
    let completions = &gathered.completions;
    if completions.seen.count == 0 {
        return;
    }
    let list: Vec<String> = completions
        .by_status
        .iter()
        .map(|(status, count)| format!("{count} x {status} {}", advice::status(*status)))
        .collect();
    let points = |wanted: &[u32]| completions.by_status.keys().any(|s| wanted.contains(s));
    let (what, fix) = if points(&[4, 8, 9, 10, 11]) {
        (
            "memory was not reachable where the NIC looked for it, which ACS redirection and a translating IOMMU cause",
            advice::ACS,
        )
    } else if points(&[12, 13]) {
        (
            "the peer did not answer: a dead peer or a fabric problem (cable, PFC, GID, routing) rather than GPUDirect",
            advice::FABRIC,
        )
    } else {
        ("work requests ended with errors", advice::FABRIC)
    };
    all.push(Finding::new(
        "nccl.completion-error",
        format!("{what}; status: {}", list.join(", ")),
        &completions.seen,
        fix,
    ));
}

/// What the records themselves show.
fn channels(all: &mut Vec<Finding>, tally: &Tally, gathered: &Gathered, verdict: Verdict) {
    if verdict != Verdict::Partial {
        return;
    }
    let is_net = |transport: u32| {
        let transport = tally.transports.get(transport as usize);
        transport.is_some_and(|t| matches!(t.kind, Kind::Net | Kind::CollNet))
    };
    let cells = tally.cells.iter().filter(|(key, _)| is_net(key.transport));
    let (send, receive) = cells.fold((Count::default(), Count::default()), |(s, r), (_, cell)| {
        (s.plus(cell.send), r.plus(cell.receive))
    });
    let none = Seen {
        count: tally.net.total - tally.net.gdr,
        first: Vec::new(),
    };
    if send.total > 0 && send.gdr == 0 && receive.gdr == receive.total {
        if gathered
            .values("NCCL_NET_GDR_READ")
            .iter()
            .all(|env| env.value != "0")
        {
            all.push(Finding::new("nccl.sends-without-gdr", "all receives use GPUDirect RDMA and no send does: NCCL decided that NICs had better not read GPU memory", &none, advice::READ));
        }
        return;
    }
    let summary = format!(
        "{} of {} network records are without GPUDirect RDMA",
        none.count, tally.net.total
    );
    all.push(Finding::new(
        "nccl.channels-without-gdr",
        summary,
        &none,
        advice::PARTIAL,
    ));
}

/// Findings that do not say why GPUDirect RDMA is not engaged.
const CONSEQUENCES: [&str; 4] = [
    "nccl.channels-without-gdr",
    "nccl.completion-error",
    "nccl.registration-failed",
    "nccl.topology-mismatch",
];

/// What the log would have to hold to tell more.
fn missing(all: &mut Vec<Finding>, gathered: &Gathered, verdict: Verdict) {
    let none = Seen::default();
    if !gathered.any && verdict == Verdict::Unknown {
        all.push(Finding::new(
            "nccl.log-empty",
            "nothing in it was printed by NCCL",
            &none,
            advice::DEBUG,
        ));
        return;
    }
    let told = !gathered.hcas.is_empty()
        || gathered.distances.disabled.count + gathered.distances.enabled > 0;
    match verdict {
        Verdict::Unknown => all.push(Finding::new(
            "nccl.log-incomplete",
            "the log holds no channel record, and nothing else that decides",
            &none,
            advice::CHANNELS,
        )),
        Verdict::NotEngaged | Verdict::Partial
            if !told && all.iter().all(|f| CONSEQUENCES.contains(&f.id.as_str())) =>
        {
            all.push(Finding::new("nccl.log-subsys", "the log does not say why: NCCL prints the reasons only with the subsystems NET and GRAPH", &none, advice::SUBSYS));
        }
        _ => {}
    }
}
