//! Which rank uses GPUDirect RDMA over which HCA, as a table in colours; each cell says it in numbers as well.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::safe;
use crate::nccl_log::{ByRank, FileReport};

/// Rows of a table; a log with more ranks has a row for each host.
const ROWS: usize = 128;
/// Columns.
const COLUMNS: usize = 64;

/// Network records, and those with GPUDirect RDMA.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Count {
    total: u64,
    gdr: u64,
}

type Column<'l> = (&'l str, u32);

struct Row<'l> {
    name: String,
    cells: BTreeMap<Column<'l>, Count>,
}

impl Row<'_> {
    fn without(&self) -> u64 {
        self.cells
            .values()
            .map(|c| c.total - c.gdr.min(c.total))
            .sum()
    }
}

/// The table, and what it leaves out.
pub(super) fn map(out: &mut String, log: &FileReport) {
    if log.ranks.is_empty() {
        out.push_str("<p>No network record says which rank uses which HCA.</p>\n");
        return;
    }
    let by_host = log.ranks.len() > ROWS;
    let mut rows = if by_host { hosts(log) } else { ranks(log) };
    let all = rows.len();
    let mut notes = Vec::new();
    if by_host {
        notes.push(format!(
            "{} ranks: each row is a host with all of its ranks.",
            log.ranks.len()
        ));
    }
    if all > ROWS {
        // the sort is stable: hosts of equal count stay in order
        rows.sort_by_key(|row| std::cmp::Reverse(row.without()));
        rows.truncate(ROWS);
        notes.push(format!(
            "Of {all} rows these are the {ROWS} with the most records without GPUDirect RDMA."
        ));
    }
    let mut columns: Vec<Column<'_>> = rows
        .iter()
        .flat_map(|row| row.cells.keys().copied())
        .collect();
    columns.sort_unstable();
    columns.dedup();
    if columns.len() > COLUMNS {
        notes.push(format!(
            "Of {} devices the first {COLUMNS} are shown.",
            columns.len()
        ));
        columns.truncate(COLUMNS);
    }
    if log.not_listed > 0 {
        notes.push(format!(
            "{} records are counted above and, for want of room, are in no row.",
            log.not_listed
        ));
    }
    notes.push("--format json has every rank and channel.".to_owned());
    let _ = write!(
        out,
        "<div class=\"wide\" tabindex=\"0\"><table class=\"heat\">\n<caption>Network records with GPUDirect RDMA, of all; ! where none has it, ~ where some have. {}</caption>\n<thead><tr><th scope=\"col\">{}</th>",
        notes.join(" "),
        if by_host { "Host" } else { "Rank" }
    );
    for (transport, device) in &columns {
        let known = log
            .devices
            .iter()
            .find(|d| d.transport == *transport && d.device == *device);
        let name = known.and_then(|d| d.name.as_deref()).unwrap_or_default();
        let _ = write!(
            out,
            "<th scope=\"col\">{}/{device}<br/>{}</th>",
            safe(transport),
            safe(name)
        );
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &rows {
        let _ = write!(out, "<tr><th scope=\"row\">{}</th>", safe(&row.name));
        for column in &columns {
            cell(out, row.cells.get(column).copied());
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn cell(out: &mut String, count: Option<Count>) {
    let Some(Count { total, gdr }) = count.filter(|count| count.total > 0) else {
        out.push_str("<td></td>");
        return;
    };
    let (class, mark) = match gdr {
        0 => ("bad", " !"),
        some if some < total => ("warn", " ~"),
        _ => ("good", ""),
    };
    let _ = write!(out, "<td class=\"{class}\">{gdr}/{total}{mark}</td>");
}

fn add<'l>(cells: &mut BTreeMap<Column<'l>, Count>, rank: &'l ByRank) {
    for device in &rank.devices {
        let count = cells
            .entry((device.transport.as_str(), device.device))
            .or_default();
        count.total += device.send.total + device.receive.total;
        count.gdr += device.send.gdr + device.receive.gdr;
    }
}

fn ranks(log: &FileReport) -> Vec<Row<'_>> {
    fn row(rank: &ByRank) -> Row<'_> {
        let ByRank {
            rank: number, host, ..
        } = rank;
        let number = number.map_or_else(|| "?".to_owned(), |number| number.to_string());
        let mut cells = BTreeMap::new();
        add(&mut cells, rank);
        Row {
            name: format!("{number} {}", host.as_deref().unwrap_or_default()),
            cells,
        }
    }
    log.ranks.iter().map(row).collect()
}

fn hosts(log: &FileReport) -> Vec<Row<'_>> {
    let mut hosts: BTreeMap<&str, BTreeMap<Column<'_>, Count>> = BTreeMap::new();
    for rank in &log.ranks {
        add(
            hosts
                .entry(rank.host.as_deref().unwrap_or("unknown host"))
                .or_default(),
            rank,
        );
    }
    let row = |(name, cells): (&str, _)| Row {
        name: name.to_owned(),
        cells,
    };
    hosts.into_iter().map(row).collect()
}
