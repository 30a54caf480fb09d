//! The answer for a person: the verdict, why, what shows it, what to do; then small tables.

use std::fmt::Write as _;

use nccl_log_parser::harmless;

use super::findings::Finding;
use super::report::{ByRank, Device, FileReport, Support};
use super::verdict::Verdict;
use crate::pci::render::Styles;
use crate::plain::wrap;

/// Rows and columns of the tables; what does not fit is counted.
const RANKS: usize = 16;
const DEVICES: usize = 12;
const HCAS: usize = 16;
const FINDINGS: usize = 12;

/// One log.
#[must_use]
pub fn file(report: &FileReport, styles: Styles) -> String {
    file_without(report, styles, |_| false)
}

/// One log, without the findings that are told elsewhere.
pub(crate) fn file_without(
    report: &FileReport,
    styles: Styles,
    told: impl Fn(&str) -> bool,
) -> String {
    let mut text = String::new();
    let Styles { head, dim, .. } = styles;
    let name = harmless(report.name.as_bytes());
    let style = match report.verdict {
        Verdict::Engaged => styles.good,
        Verdict::NotEngaged | Verdict::Partial => styles.bad,
        Verdict::Unknown => styles.warn,
        Verdict::NotApplicable => styles.dim,
    };
    let _ = writeln!(
        text,
        "{head}{name}{head:#}: {style}{}{style:#}",
        sentence(report)
    );
    if let Some(error) = &report.error {
        let bad = styles.bad;
        let _ = writeln!(text, "  {bad}read only in part{bad:#}: {error}");
    }
    let findings: Vec<&Finding> = report.findings.iter().filter(|f| !told(&f.id)).collect();
    for found in findings.iter().take(FINDINGS) {
        finding(&mut text, found, styles);
    }
    more(&mut text, findings.len(), FINDINGS, "findings");
    let version = report.nccl_version.as_deref().unwrap_or("unknown");
    let transports = report.channels.by_transport.iter();
    let transports: Vec<String> = transports
        .map(|(name, count)| match name.split('/').next() {
            Some("NET" | "COLLNET") => {
                format!("{name} {} ({} with GPUDirect RDMA)", count.total, count.gdr)
            }
            _ => format!("{name} {}", count.total),
        })
        .collect();
    let version = harmless(version.as_bytes());
    let _ = write!(text, "  {dim}NCCL {version}");
    if !transports.is_empty() {
        let _ = write!(text, "; records: {}", transports.join(", "));
    }
    let _ = writeln!(text, "{dim:#}");
    devices(&mut text, report, styles);
    ranks(&mut text, report, styles);
    text
}

fn sentence(report: &FileReport) -> String {
    let channels = &report.channels;
    let word = report.verdict.word();
    match report.verdict {
        Verdict::Engaged => format!(
            "{word}: all {} network records have GPUDirect RDMA",
            channels.net
        ),
        Verdict::Partial => format!(
            "{word}: {} of {} network records have GPUDirect RDMA",
            channels.gdr, channels.net
        ),
        Verdict::NotEngaged if channels.net > 0 => {
            format!(
                "{word}: none of {} network records has GPUDirect RDMA",
                channels.net
            )
        }
        Verdict::NotEngaged => {
            format!("{word}: no channel record, and what the log says rules GPUDirect RDMA out")
        }
        Verdict::NotApplicable => format!("{word}: nothing leaves the node"),
        Verdict::Unknown => format!("{word}: the log does not tell"),
    }
}

fn finding(text: &mut String, finding: &Finding, styles: Styles) {
    let Styles { warn, dim, .. } = styles;
    let summary = harmless(finding.summary.as_bytes());
    let _ = writeln!(text, "  {warn}{}{warn:#}  {summary}", finding.id);
    for evidence in &finding.evidence {
        let _ = write!(text, "{dim}");
        wrap(
            text,
            "      ",
            &format!("line {}: {}", evidence.line, evidence.text),
        );
        let _ = write!(text, "{dim:#}");
    }
    let shown = finding.evidence.len() as u64;
    if shown > 0 && finding.count > shown {
        let _ = writeln!(text, "      {dim}and {} more{dim:#}", finding.count - shown);
    }
    wrap(text, "      fix: ", &finding.fix);
}

fn more(text: &mut String, all: usize, shown: usize, what: &str) {
    if all > shown {
        let _ = writeln!(
            text,
            "  and {} more {what}; `--format json` has all",
            all - shown
        );
    }
}

/// HCAs and devices: what each could do, and what it is used for.
fn devices(text: &mut String, report: &FileReport, styles: Styles) {
    let mut rows: Vec<[String; 4]> = Vec::new();
    let used = |device: &Device| format!("{} of {}", device.count.gdr, device.count.total);
    for device in &report.devices {
        let name = device.name.clone();
        let hca = report.hcas.iter().find(|hca| {
            device.transport.strip_prefix("NET/") == Some(&hca.net)
                && Some(&hca.name) == device.name.as_ref()
        });
        rows.push([
            format!("{}/{}", device.transport, device.device),
            name.unwrap_or_else(|| "?".into()),
            hca.map_or_else(|| "?".into(), |hca| capable(hca.gdr).to_owned()),
            used(device),
        ]);
    }
    for hca in &report.hcas {
        let listed = report.devices.iter().any(|device| {
            device.transport.strip_prefix("NET/") == Some(&hca.net)
                && device.name.as_ref() == Some(&hca.name)
        });
        if !listed {
            rows.push([
                format!("NET/{}", hca.net),
                hca.name.clone(),
                capable(hca.gdr).to_owned(),
                "unused".into(),
            ]);
        }
    }
    if rows.is_empty() {
        return;
    }
    let head = ["device", "HCA", "capable", "records with GDR"].map(str::to_owned);
    let count = rows.len();
    rows.truncate(HCAS);
    rows.insert(0, head);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths = [width(0), width(1), width(2)];
    for (i, [device, name, capable, used]) in rows.iter().enumerate() {
        let [a, b, c] = widths;
        let line = format!("  {device:a$}  {name:b$}  {capable:c$}  {used}");
        let line = harmless(line.trim_end().as_bytes());
        let dim = styles.dim;
        let _ = match i {
            0 => writeln!(text, "  {dim}{line}{dim:#}"),
            _ => writeln!(text, "  {line}"),
        };
    }
    more(text, count, HCAS, "devices");
}

fn capable(support: Support) -> &'static str {
    match support {
        Support::Enabled => "yes",
        Support::Disabled => "no",
    }
}

/// Which rank uses which device how: those that lack something first.
fn ranks(text: &mut String, report: &FileReport, styles: Styles) {
    let mut ranks: Vec<&ByRank> = report.ranks.iter().filter(|r| r.rank.is_some()).collect();
    if ranks.is_empty() {
        return;
    }
    ranks.sort_by_key(|rank| rank.verdict == Verdict::Engaged);
    let columns: Vec<&Device> = report.devices.iter().take(DEVICES).collect();
    let titles: Vec<String> = columns
        .iter()
        .map(|device| {
            let number = device.device.to_string();
            device.name.clone().unwrap_or(number)
        })
        .collect();
    let dim = styles.dim;
    let titles_line = harmless(titles.join("  ").as_bytes());
    let _ = writeln!(
        text,
        "  {dim}{:>6}  {titles_line}  (G with, - without, p both){dim:#}",
        "rank"
    );
    for rank in ranks.iter().take(RANKS) {
        let number = rank.rank.map_or_else(String::new, |r| r.to_string());
        let _ = write!(text, "  {number:>6}  ");
        for (device, title) in columns.iter().zip(&titles) {
            let same = |d: &&super::report::RankDevice| {
                d.transport == device.transport && d.device == device.device
            };
            let (style, mark) = match rank.devices.iter().find(same).map(|d| d.verdict) {
                Some(Verdict::Engaged) => (styles.good, "G"),
                Some(Verdict::Partial) => (styles.bad, "p"),
                Some(_) => (styles.bad, "-"),
                None => (styles.dim, "."),
            };
            let pad = title.chars().count() + 1;
            let _ = write!(text, "{style}{mark}{style:#}{:pad$}", "");
        }
        let host = rank.host.as_deref().unwrap_or("?");
        let _ = writeln!(text, "{dim}{}{dim:#}", harmless(host.as_bytes()));
    }
    more(text, ranks.len(), RANKS, "ranks");
    more(text, report.devices.len(), DEVICES, "devices");
}
