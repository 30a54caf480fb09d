//! The table of results: its head says which columns there are and in which unit they are.
//!
//! perftest's heads (`src/perftest_parameters.h`): bytes, iterations, peak, average, message rate; `#sl` after the bytes with
//! `--raw_qos`; four more columns with `--report-per-port`; `CPU_Util[%]` with `--cpu_util`. The unit is `MB/sec`, `MiB/sec` since
//! 24.07, or `Gb/sec` with `--report_gbits`. What perftest calls MB are 2^20 bytes in all versions.

use super::{Memory, Row};

/// 10^9 bits per second in one 2^20 bytes per second.
pub(super) const GBPS_PER_MIB: f64 = 1_048_576.0 * 8.0 / 1e9;

/// Where the columns of a table are.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    /// What stands before the table on its lines: the name of a host or a stream.
    prefix: String,
    columns: usize,
    iterations: usize,
    peak: Option<usize>,
    average: usize,
    rate: Option<usize>,
    /// 10^9 bits per second in one of the table's.
    scale: f64,
}

/// Whether a line is the head of some table of perftest's, be it one of latencies.
pub(super) fn is_head(line: &str) -> bool {
    line.contains("#bytes") && line.contains("#iterations")
}

impl Table {
    /// The table that a line is the head of; none for other tables, such as one of latencies.
    pub(super) fn of(line: &str) -> Option<Self> {
        let at = line.find("#bytes")?;
        let (prefix, head) = line.split_at_checked(at)?;
        let names = names(head);
        let find = |wanted: &str| names.iter().position(|name| name.starts_with(wanted));
        let average = find("BW average[")?;
        let unit = names.get(average)?.strip_prefix("BW average[")?;
        Some(Self {
            prefix: prefix.trim().to_owned(),
            columns: names.len(),
            iterations: find("#iterations")?,
            peak: find("BW peak["),
            average,
            rate: find("MsgRate["),
            scale: scale(unit.trim_end_matches(']'))?,
        })
    }

    /// A row of the table. A line with fewer columns is none, nor is one that is cut off.
    pub(super) fn row(&self, line: &str, memory: Memory) -> Option<Row> {
        let line = line.trim();
        let line = line.strip_prefix(&self.prefix).unwrap_or(line);
        let fields: Vec<&str> = line.split_whitespace().take(self.columns).collect();
        if fields.len() < self.columns {
            return None;
        }
        let whole = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let real = |at: usize| number(fields.get(at)?);
        let average = real(self.average)?;
        let peak = match self.peak {
            Some(at) => Some(real(at)?),
            None => None,
        };
        Some(Row {
            bytes: whole(0)?,
            iterations: whole(self.iterations)?,
            peak_gbps: measured(peak).map(|peak| peak * self.scale),
            average_gbps: average * self.scale,
            mpps: self.rate.and_then(real),
            memory,
        })
    }
}

/// A peak of 0.00 stands for one that was not measured.
pub(super) fn measured(peak: Option<f64>) -> Option<f64> {
    peak.filter(|peak| *peak > 0.0)
}

/// A plain number that is not negative.
fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let number = text.parse::<f64>().ok()?;
    (plain && number.is_finite()).then_some(number)
}

fn scale(unit: &str) -> Option<f64> {
    match unit {
        "Gb/sec" | "Gbps" => Some(1.0),
        "MB/sec" | "MiB/sec" => Some(GBPS_PER_MIB),
        _ => None,
    }
}

/// `#bytes`, `BW peak[Gb/sec]`: a name is a word with `#`, or ends with its unit.
fn names(head: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut open = String::new();
    for word in head.split_whitespace() {
        if !open.is_empty() {
            open.push(' ');
        }
        open.push_str(word);
        if word.starts_with('#') || word.ends_with(']') {
            names.push(std::mem::take(&mut open));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]";

    #[test]
    fn all_heads_of_all_versions() {
        let row = |head: &str, line: &str| Table::of(head).and_then(|t| t.row(line, Memory::Host));
        let plain = row(
            HEAD,
            " 65536      5000             92.42              92.40 \t\t   0.176230",
        )
        .unwrap();
        assert_eq!((plain.bytes, plain.iterations), (65536, 5000));
        assert_eq!((plain.peak_gbps, plain.average_gbps), (Some(92.42), 92.40));
        let mib = HEAD.replace("Gb/sec", "MiB/sec");
        let mib = row(&mib, " 8388608 20000 0.00 24056.72 0.003007").unwrap();
        assert_eq!(mib.peak_gbps, None);
        // 24056.72 * 2^20 * 8 / 10^9, worked out by hand
        assert!((mib.average_gbps - 201.8024).abs() < 0.0001);
        let qos = HEAD.replace("#bytes", "#bytes    #sl");
        let qos = row(&qos, " 65536 3 5000 92.42 92.40 0.176230").unwrap();
        assert_eq!((qos.iterations, qos.average_gbps), (5000, 92.40));
        let ports = format!(
            "{HEAD}   BW Port1[Gb/sec]   MsgRate Port1[Mpps]   BW Port2[Gb/sec]   MsgRate Port2[Mpps]"
        );
        let ports = row(&ports, "65536 5000 92.42 92.40 0.17 46 0.08 46 0.09").unwrap();
        assert_eq!((ports.average_gbps, ports.mpps), (92.40, Some(0.17)));
        let cpu = format!("{HEAD}    CPU_Util[%]");
        assert_eq!(row(&cpu, "65536 5000 92.42 92.40 0.17"), None);
        assert!(row(&cpu, "65536 5000 92.42 92.40 0.17   12.50").is_some());
        let prefixed = format!("node1: {HEAD}");
        assert!(row(&prefixed, "node1:  65536 5000 92.42 92.40 0.17").is_some());
    }

    #[test]
    fn what_is_no_row() {
        let table = Table::of(HEAD).unwrap();
        for line in [
            "65536 5000 92.42 92.40",
            "65536 5000 nan 92.40 0.1",
            "-1 5000 1 1 1",
            "65536 5000 92.42 inf 0.1",
            "65536 5000 1e9 1e9 1",
        ] {
            assert_eq!(table.row(line, Memory::Host), None, "{line}");
        }
        let latency = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]";
        assert!(is_head(latency) && Table::of(latency).is_none());
    }
}
