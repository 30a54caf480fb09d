//! What the settings do to GPUDirect RDMA.

use std::collections::BTreeMap;

use super::names::{is_others, lookup, suggestion};
use super::value::{Level, integer, is_number, level};
use super::{NcclEnv, Setting, hca, scopes};
use crate::facts::RdmaDevice;
use crate::finding::Finding;
use crate::pci::path::PathKind;
use crate::plain::{counted, shown};

/// What else is known of the node.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// The RDMA devices, where they were read.
    pub devices: Option<&'a [RdmaDevice]>,
    /// NCCL's minor version (26 for 2.26), where it is known.
    pub minor: Option<u32>,
}

/// Findings of one kind that are told one by one; a hostile environment has thousands of names.
const EACH: usize = 32;

/// The findings: what turns it off first, then what is slower, then what has no effect.
#[must_use]
pub fn findings(env: &NcclEnv, known: Known<'_>) -> Vec<Finding> {
    // the same thing from several processes is told once
    let mut found: BTreeMap<(u8, String, String, String), Finding> = BTreeMap::new();
    for scope in scopes(env) {
        for setting in &scope.settings {
            let Some((rank, mut finding)) = judge(setting, known) else {
                continue;
            };
            if scope.pids.len() > 1 && setting.from.starts_with("pid ") {
                let more = format!(
                    "and {} with the same settings",
                    counted(scope.pids.len() - 1, "more process")
                );
                finding.evidence.push(more);
            }
            let key = (
                rank,
                finding.id.clone(),
                setting.name.clone(),
                shown(&setting.value),
            );
            match found.get_mut(&key) {
                None => {
                    found.insert(key, finding);
                }
                Some(other) if other.evidence.len() < 8 => {
                    let new: Vec<String> = finding
                        .evidence
                        .into_iter()
                        .filter(|e| !other.evidence.contains(e))
                        .collect();
                    other.evidence.extend(new);
                }
                Some(_) => {}
            }
        }
    }
    let mut findings = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for finding in found.into_values() {
        let count = counts.entry(finding.id.clone()).or_default();
        *count += 1;
        if *count <= EACH {
            findings.push(finding);
        }
    }
    findings.extend(unread(env));
    findings
}

fn unread(env: &NcclEnv) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &env.files {
        if let Some(why) = &file.lines.unknown {
            findings.push(Finding::unknown(
                "nccl.env-unread",
                file.lines.from.clone(),
                vec![why.clone()],
                "run it as root",
            ));
        }
        let lines = file.lines.get().into_iter().flatten();
        let mistakes = lines.filter_map(|line| {
            let why = line.mistake()?;
            Some(format!("{}:{}: {why}", file.lines.from, line.number))
        });
        let mistakes: Vec<String> = mistakes.take(8).collect();
        if !mistakes.is_empty() {
            findings.push(Finding::warning(
                "nccl.env-bad-line",
                file.lines.from.clone(),
                mistakes,
                "write NAME=VALUE from the first column on",
            ));
        }
    }
    if env.denied > 0 {
        findings.push(Finding::unknown(
            "nccl.env-unread",
            "processes",
            vec![format!(
                "the environment of {} may not be read",
                counted(usize::try_from(env.denied).unwrap_or(usize::MAX), "process")
            )],
            "run it as root",
        ));
    }
    findings
}

fn judge(setting: &Setting, known: Known<'_>) -> Option<(u8, Finding)> {
    let Setting { name, value, from } = setting;
    let evidence = |why: &str| vec![format!("{from}: {}={} {why}", shown(name), shown(value))];
    let fix = format!("take {name} away");
    let off = integer(value) == Some(0);
    let failed = |id: &str, why: &str| {
        Some((
            0,
            Finding::failed(id, name.clone(), evidence(why), fix.clone()),
        ))
    };
    let slower = |id: &str, why: &str, fix: &str| {
        Some((1, Finding::warning(id, name.clone(), evidence(why), fix)))
    };
    match name.as_str() {
        "NCCL_IB_DISABLE" if integer(value).is_some_and(|v| v != 0) => failed(
            "nccl.env-net-disabled",
            "turns RDMA off: NCCL falls back to sockets",
        ),
        "NCCL_NET" if value.eq_ignore_ascii_case("socket") => failed(
            "nccl.env-net-disabled",
            "chooses sockets, which have no GPUDirect",
        ),
        "NCCL_NET_GDR_LEVEL" => match level(value) {
            Level::Never | Level::NvLink => {
                failed("nccl.env-gdr-level", "turns GPUDirect RDMA off")
            }
            Level::Up(PathKind::Pix) => slower(
                "nccl.env-gdr-level",
                "allows GPUDirect RDMA below one PCIe switch only; by itself NCCL goes up to PXB",
                &fix,
            ),
            Level::Ignored if !value.is_empty() => slower(
                "nccl.env-bad-value",
                "is no level: NCCL ignores it and takes its default",
                "write LOC, PIX, PXB, PHB or SYS, in capitals and without blanks",
            ),
            Level::Up(_) | Level::Ignored => None,
        },
        // a word is 0 to NCCL: `on` turns it off
        "NCCL_NET_GDR_READ" if off => failed(
            "nccl.env-gdr-read",
            "turns GPUDirect RDMA off for sends; receives keep it",
        ),
        "NCCL_DMABUF_ENABLE" if off => slower(
            "nccl.env-dmabuf-disabled",
            "turns DMA-BUF off: GPUDirect RDMA then needs nvidia-peermem",
            &fix,
        ),
        "NCCL_IB_PCI_RELAXED_ORDERING" if off => slower(
            "nccl.env-relaxed-ordering",
            "turns relaxed ordering off: slower where PCIe writes wait for each other, in virtual machines above all",
            &fix,
        ),
        "NCCL_NET_GDR_C2C" if off => slower(
            "nccl.env-gdr-c2c",
            "turns the way over C2C off: on Grace machines a NIC at the CPU then has no GPUDirect RDMA",
            &fix,
        ),
        "NCCL_P2P_DISABLE" if integer(value) == Some(1) => slower(
            "nccl.env-p2p-disabled",
            "turns copies between the GPUs of a node off; it has nothing to do with GPUDirect RDMA",
            &fix,
        ),
        "NCCL_P2P_LEVEL" if matches!(level(value), Level::Never) => slower(
            "nccl.env-p2p-disabled",
            "turns copies between the GPUs of a node off; it has nothing to do with GPUDirect RDMA",
            &fix,
        ),
        "NCCL_IB_HCA" => no_device(setting, known),
        _ => unknown_name(setting, known).or_else(|| word(setting)),
    }
}

/// A list of HCAs that none of the node's is on.
fn no_device(setting: &Setting, known: Known<'_>) -> Option<(u8, Finding)> {
    let devices = known.devices.filter(|devices| !devices.is_empty())?;
    let ports = devices.iter().flat_map(|d| {
        d.ports
            .iter()
            .map(move |port| (d.name.as_str(), port.number))
    });
    if ports.clone().next().is_none()
        || ports
            .clone()
            .any(|(name, port)| hca::uses(&setting.value, name, port))
    {
        return None;
    }
    let names: Vec<&str> = devices.iter().map(|d| d.name.as_str()).take(16).collect();
    let evidence = vec![
        format!(
            "{}: {}={} fits no RDMA device",
            setting.from,
            setting.name,
            shown(&setting.value)
        ),
        format!("/sys/class/infiniband has {}", names.join(", ")),
    ];
    let fix = "name devices that are there; without a port, `mlx5_1` is the beginning of `mlx5_10` too, and `=mlx5_1` is not";
    Some((
        0,
        Finding::failed("nccl.env-hca-none", setting.name.clone(), evidence, fix),
    ))
}

fn unknown_name(setting: &Setting, known: Known<'_>) -> Option<(u8, Finding)> {
    let name = &setting.name;
    if !name.starts_with("NCCL_") || is_others(name) {
        return None;
    }
    let why = match (lookup(name), known.minor) {
        (None, _) => "is read by no version of NCCL".to_owned(),
        (Some(found), minor) => {
            let minor_of = |version: &str| {
                version
                    .split_once('.')
                    .and_then(|(_, minor)| minor.parse::<u32>().ok())
            };
            let first = found.first.and_then(minor_of);
            let last = found.last.and_then(minor_of);
            match (minor, first, last) {
                (Some(minor), Some(first), _) if minor < first => {
                    format!("is read from NCCL 2.{first} on, and this is 2.{minor}")
                }
                (Some(minor), _, Some(last)) if minor > last => {
                    format!("was read up to NCCL 2.{last}, and this is 2.{minor}")
                }
                (None, _, Some(last)) => format!("was read up to NCCL 2.{last} and no longer"),
                _ => return None,
            }
        }
    };
    let fix = match suggestion(name) {
        Some(meant) if meant != name => format!("did you mean {meant}? If not, take it away"),
        _ => "take it away".to_owned(),
    };
    let evidence = vec![format!("{}: {} {why}", setting.from, shown(name))];
    Some((
        2,
        Finding::warning("nccl.env-unknown-name", shown(name), evidence, fix),
    ))
}

/// Variables that are numbers, and for which people write words: NCCL takes any word for 0.
const NUMBERS: [&str; 8] = [
    "NCCL_IB_DISABLE",
    "NCCL_NET_GDR_READ",
    "NCCL_NET_GDR_C2C",
    "NCCL_DMABUF_ENABLE",
    "NCCL_IB_PCI_RELAXED_ORDERING",
    "NCCL_P2P_DISABLE",
    "NCCL_IB_DATA_DIRECT",
    "NCCL_IGNORE_CPU_AFFINITY",
];

fn word(setting: &Setting) -> Option<(u8, Finding)> {
    let Setting { name, value, from } = setting;
    if !NUMBERS.contains(&name.as_str()) || value.is_empty() || is_number(value) {
        return None;
    }
    let evidence = vec![format!(
        "{from}: {name}={} is no number: NCCL takes it for {}",
        shown(value),
        integer(value).unwrap_or(0)
    )];
    Some((
        1,
        Finding::warning(
            "nccl.env-bad-value",
            name.clone(),
            evidence,
            "write 0 or 1, without quotes",
        ),
    ))
}
