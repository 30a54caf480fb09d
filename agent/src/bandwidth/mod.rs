//! The bandwidth between a GPU and a NIC, measured by perftest (`ib_write_bw`, `ib_read_bw`).
//!
//! Pure: output of any version, as text or as JSON, becomes a [`Run`]; runs become a [`Judgement`]. The comparison of a
//! run on GPU memory with one on host memory over the same NIC is the evidence that GPUDirect RDMA works at speed:
//! perftest never falls back to host memory, it ends. `docs/bandwidth.md` has the formats and the rules.

mod command;
mod failure;
mod json;
mod judge;
mod table;
mod text;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use command::{Buffer, Build, Test, Wanted};
pub use failure::{Failure, Kind, stopped};
pub use judge::{Judgement, Ratio, judge};

/// Where the buffer of a test lies.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// Host memory.
    Host,
    /// GPU memory that the NIC's driver was given by virtual address (nvidia-peermem).
    Gpu,
    /// GPU memory as a DMA-BUF.
    DmaBuf,
    /// The output does not tell.
    Unknown,
}

impl Memory {
    /// Whether it is known to be a GPU's.
    #[must_use]
    pub const fn is_gpu(self) -> bool {
        matches!(self, Self::Gpu | Self::DmaBuf)
    }

    /// For people.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Host => "host memory",
            Self::Gpu => "GPU memory",
            Self::DmaBuf => "GPU memory (DMA-BUF)",
            Self::Unknown => "memory not told",
        }
    }
}

/// One row of results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Message size.
    pub bytes: u64,
    /// Messages.
    pub iterations: u64,
    /// 10^9 bits per second; null where perftest did not measure a peak (duration mode, `-N`).
    pub peak_gbps: Option<f64>,
    /// 10^9 bits per second.
    pub average_gbps: f64,
    /// 10^6 messages per second.
    pub mpps: Option<f64>,
    /// Where the buffer lay.
    pub memory: Memory,
}

/// What the head of the output says about the test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// Such as `RDMA_Write BW Test`.
    pub test: Option<String>,
    /// The RDMA device, such as `mlx5_0`.
    pub device: Option<String>,
    /// `Ethernet` or `IB`.
    pub link: Option<String>,
    /// Queue pairs.
    pub qps: Option<u64>,
    /// Bytes.
    pub mtu: Option<u64>,
    /// CUDA's number of the GPU.
    pub cuda_device: Option<u64>,
    /// The GPU's PCI address as perftest prints it: bus and device, hexadecimal.
    pub gpu: Option<String>,
    /// The GPU's name.
    pub gpu_name: Option<String>,
}

/// One output of perftest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Whose output it is: a path as given, or what was run.
    pub name: String,
    /// What was tested.
    pub about: About,
    /// Where the buffer lay, as far as one answer holds for all of it.
    pub memory: Memory,
    /// Rows, those before a failure too, in the order of the output.
    pub rows: Vec<Row>,
    /// What went wrong, by perftest's own messages.
    pub failures: Vec<Failure>,
}

impl Run {
    /// Reads an output, text or JSON, of any version.
    #[must_use]
    pub fn read(name: &str, output: &[u8]) -> Self {
        let first = output.iter().find(|byte| !byte.is_ascii_whitespace());
        let mut run = match first {
            Some(b'{' | b'[') => json::read(name, output),
            _ => text::read(name, output),
        };
        if run.rows.is_empty() && run.failures.is_empty() {
            run.failures.push(failure::no_result(output));
        }
        run
    }

    /// What went wrong, in perftest's words; none if nothing did.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        let messages: Vec<&str> = self.failures.iter().map(|f| f.message.as_str()).collect();
        (!messages.is_empty()).then(|| messages.join("; "))
    }

    /// The best average.
    #[must_use]
    pub fn best(&self) -> Option<&Row> {
        self.rows
            .iter()
            .max_by(|a, b| a.average_gbps.total_cmp(&b.average_gbps))
    }
}
