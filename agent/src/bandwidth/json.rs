//! perftest's JSON (`--out_json`), and what older versions take for JSON: names without quotes, commas before a closing
//! brace. Only the names and numbers of `results` and `test_info` are looked for, whatever surrounds them.
//!
//! It names no unit. Message rate times message size does: the average is that in Gb or in 2^20 bytes.

use std::collections::BTreeMap;

use super::table::{GBPS_PER_MIB, measured};
use super::{About, Memory, Row, Run};
use crate::plain::shown;

const ROWS: usize = 10_000;

/// How far an average may be from its rate times its size: a rate has six decimals, and may be small.
const CLOSE: f64 = 0.05;

pub(super) fn read(name: &str, output: &[u8]) -> Run {
    let text = String::from_utf8_lossy(output);
    let mut run = Run {
        name: name.to_owned(),
        about: About::default(),
        memory: Memory::Unknown,
        rows: Vec::new(),
        failures: Vec::new(),
    };
    let mut fields: BTreeMap<&str, &str> = BTreeMap::new();
    let mut key = None;
    for token in Tokens(&text) {
        match token {
            Token::Sign(':') => {}
            Token::Sign('{') => {
                fields.clear();
                key = None;
            }
            Token::Sign('}') => {
                take(&mut run, &fields);
                fields.clear();
                key = None;
            }
            Token::Sign(_) => key = None,
            Token::Word(word) => match key.take() {
                None => key = Some(word),
                Some(key) if fields.len() < 64 => {
                    fields.insert(key, word);
                }
                Some(_) => {}
            },
        }
    }
    // cut off: what was read of the last object counts if it is a whole row
    take(&mut run, &fields);
    for row in &mut run.rows {
        row.memory = run.memory;
    }
    run
}

fn take(run: &mut Run, fields: &BTreeMap<&str, &str>) {
    if fields.contains_key("Device") || fields.contains_key("test") {
        about(run, fields);
    } else if run.rows.len() < ROWS {
        run.rows.extend(row(fields));
    }
}

fn about(run: &mut Run, fields: &BTreeMap<&str, &str>) {
    let word = |key: &str| fields.get(key).map(|value| shown(value));
    let number = |key: &str| fields.get(key)?.parse().ok();
    run.about = About {
        test: word("test").map(|test| test.replace('_', " ").replace("RDMA ", "RDMA_")),
        device: word("Device"),
        link: word("Link_type"),
        qps: number("Number_of_qps"),
        mtu: number("Mtu"),
        cuda_device: number("cuda_device"),
        gpu: None,
        gpu_name: None,
    };
    let rocm = fields.get("Use_ROCm_memory").is_some_and(|on| *on == "ON");
    // whether it was a DMA-BUF is not told; versions that tell nothing of CUDA cannot be told from host memory
    run.memory = if run.about.cuda_device.is_some() || rocm {
        Memory::Gpu
    } else if fields.contains_key("Use_ROCm_memory") {
        Memory::Host
    } else {
        Memory::Unknown
    };
}

fn row(fields: &BTreeMap<&str, &str>) -> Option<Row> {
    let real = |key: &str| {
        let number = fields.get(key)?.parse::<f64>().ok()?;
        (number.is_finite() && number >= 0.0).then_some(number)
    };
    let bytes: u64 = fields.get("MsgSize")?.parse().ok()?;
    let average = real("BW_average")?;
    let rate = real("MsgRate");
    let scale = scale(average, rate?, bytes)?;
    Some(Row {
        bytes,
        iterations: fields.get("n_iterations")?.parse().ok()?,
        peak_gbps: measured(real("BW_peak")).map(|peak| peak * scale),
        average_gbps: average * scale,
        mpps: rate,
        memory: Memory::Unknown,
    })
}

/// 10^9 bits per second in one of the average's unit; none if neither unit fits.
fn scale(average: f64, mpps: f64, bytes: u64) -> Option<f64> {
    let gbps = mpps * bytes as f64 * 8.0 / 1e3;
    let fits = |scale: f64| {
        let expected = gbps / scale;
        // half of the last decimal of the rate, and of the average
        let rounding = 0.000_000_6 * bytes as f64 * 8.0 / 1e3 / scale + 0.006;
        (average - expected).abs() <= expected * CLOSE + rounding
    };
    match (fits(1.0), fits(GBPS_PER_MIB)) {
        (true, false) => Some(1.0),
        (false, true) => Some(GBPS_PER_MIB),
        // nothing was transferred, or too little to tell
        (true, true) if average == 0.0 => Some(1.0),
        _ => None,
    }
}

enum Token<'t> {
    /// A string without its quotes, a number, a bare word.
    Word(&'t str),
    /// A brace, bracket, colon or comma.
    Sign(char),
}

/// The rest of the text.
struct Tokens<'t>(&'t str);

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        let text = self.0.trim_start();
        let first = text.chars().next()?;
        let rest = text.get(first.len_utf8()..)?;
        if "{}[]:,".contains(first) {
            self.0 = rest;
            return Some(Token::Sign(first));
        }
        if first == '"' {
            let end = rest.find(['"', '\n']).unwrap_or(rest.len());
            let (word, after) = rest.split_at_checked(end)?;
            self.0 = after.strip_prefix(['"', '\n']).unwrap_or(after);
            return Some(Token::Word(word));
        }
        // bare words of old versions hold blanks: they end where a sign or the line does
        let end = text
            .find(['{', '}', '[', ']', ':', ',', '\n', '"'])
            .unwrap_or(text.len());
        let (word, after) = text.split_at_checked(end)?;
        self.0 = after;
        Some(Token::Word(word.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_comes_from_rate_and_size() {
        // 92.40 Gb/s are 11014.9 MiB/s
        assert_eq!(scale(92.40, 0.176_230, 65536), Some(1.0));
        assert_eq!(scale(11014.9, 0.176_230, 65536), Some(GBPS_PER_MIB));
        // 8 MiB messages have a rate of four digits
        assert_eq!(scale(197.48, 0.002_943, 8_388_608), Some(1.0));
        assert_eq!(scale(23240.68, 0.002_905, 8_388_608), Some(GBPS_PER_MIB));
        assert_eq!(scale(5.0, 0.176_230, 65536), None);
        assert_eq!(scale(0.0, 0.0, 65536), Some(1.0));
    }
}
