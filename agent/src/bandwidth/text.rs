//! The text that perftest prints, of one side or of both at once.

use super::failure::{self, Failure};
use super::table::{Table, is_head};
use super::{About, Memory, Row, Run};
use crate::plain::{clean, shown};

/// Rows and failures that are kept of one output.
const ROWS: usize = 10_000;
const FAILURES: usize = 16;

#[derive(Default)]
struct State {
    about: About,
    table: Option<Table>,
    rows: Vec<Row>,
    failures: Vec<Failure>,
    memory: Option<Memory>,
    /// The name of the test was seen, so the output is not the mere table, and silence about CUDA means host memory.
    banner: bool,
    /// PCI addresses by CUDA's numbers.
    gpus: Vec<(u64, String)>,
}

pub(super) fn read(name: &str, output: &[u8]) -> Run {
    let mut state = State::default();
    for line in output.split(|byte| *byte == b'\n') {
        state.line(&clean(line));
    }
    state.run(name)
}

impl State {
    fn line(&mut self, line: &str) {
        if is_head(line) {
            self.table = Table::of(line);
            if self.memory.is_none() && self.banner {
                // CUDA is initialised, and said to be, before the table in all versions
                self.memory = Some(Memory::Host);
            }
            return;
        }
        let memory = self.memory.unwrap_or(Memory::Unknown);
        if let Some(row) = self.table.as_ref().and_then(|t| t.row(line, memory)) {
            if self.rows.len() < ROWS {
                self.rows.push(row);
            }
            return;
        }
        self.chatter(line);
        self.head(line);
        if self.failures.len() < FAILURES
            && let Some(failure) = failure::of(line)
            && !self.failures.contains(&failure)
        {
            self.failures.push(failure);
        }
    }

    /// What the CUDA side of it says (`src/cuda_memory.c`; before 2023 in `src/perftest_resources.c`).
    fn chatter(&mut self, line: &str) {
        let text = line.trim();
        if line.contains("using DMA-BUF for GPU buffer") || line.contains("ibv_reg_dmabuf_mr(") {
            self.memory = Some(Memory::DmaBuf);
        } else if [
            "initializing CUDA",
            "cuMemAlloc() of a",
            "allocated GPU buffer",
            "Using ROCm Device",
        ]
        .iter()
        .any(|said| line.contains(said))
        {
            if self.memory != Some(Memory::DmaBuf) {
                self.memory = Some(Memory::Gpu);
            }
        } else if text.starts_with("destroying current CUDA Ctx") {
            // what comes after it in the same file is another run
            self.memory = None;
            self.banner = false;
        } else if let Some(rest) = text.strip_prefix("CUDA device ") {
            if let Some((number, address)) = rest.split_once(": PCIe address is ")
                && let Ok(number) = number.parse()
                && self.gpus.len() < 256
            {
                self.gpus.push((number, shown(address)));
            }
        } else if let Some(rest) = text
            .strip_prefix("Picking device No. ")
            .or_else(|| text.strip_prefix("Picking GPU number "))
        {
            self.about.cuda_device = rest.trim().parse().ok();
        } else if let Some((_, rest)) = text.split_once("device name = [") {
            self.about.gpu_name = Some(shown(rest.trim_end_matches(']')));
        }
    }

    fn head(&mut self, line: &str) {
        let text = line.trim();
        if text.ends_with(" BW Test") && text.len() < 60 {
            self.about.test.get_or_insert_with(|| shown(text));
            self.banner = true;
        }
        let about = &mut self.about;
        let word = |key: &str| {
            let rest = value(line, key)?;
            rest.split_whitespace().next().map(shown)
        };
        let number = |key: &str| {
            let digits: String = word(key)?
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            digits.parse().ok()
        };
        about.device = about.device.take().or_else(|| word("Device"));
        about.link = about.link.take().or_else(|| word("Link type"));
        about.qps = about.qps.or_else(|| number("Number of qps"));
        about.mtu = about.mtu.or_else(|| number("Mtu"));
    }

    fn run(mut self, name: &str) -> Run {
        let told = |wanted: u64| self.gpus.iter().find(|(number, _)| *number == wanted);
        self.about.gpu = self
            .about
            .cuda_device
            .and_then(told)
            .map(|(_, address)| address.clone());
        let mut memory = self.rows.first().map(|row| row.memory);
        if self.rows.iter().any(|row| Some(row.memory) != memory) {
            memory = Some(Memory::Unknown);
        }
        Run {
            name: name.to_owned(),
            about: self.about,
            memory: memory.or(self.memory).unwrap_or(Memory::Unknown),
            rows: self.rows,
            failures: self.failures,
        }
    }
}

/// The value of `Device         : mlx5_0`, of which a line may have two.
fn value<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let at = line.find(key)?;
    let before = line.get(..at)?;
    if !before.is_empty() && !before.ends_with([' ', '\t']) {
        return None;
    }
    let rest = line.get(at + key.len()..)?.trim_start();
    Some(rest.strip_prefix(':')?.trim_start())
}
