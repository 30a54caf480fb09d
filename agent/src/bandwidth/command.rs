//! The command line of perftest, as this build of it has options.

use super::failure::{Failure, Kind};
use crate::pci::Bdf;

/// Which direction is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Test {
    /// RDMA write: the sender's NIC reads memory, the receiver's writes it.
    Write,
    /// RDMA read.
    Read,
}

impl Test {
    /// The program.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            Self::Write => "ib_write_bw",
            Self::Read => "ib_read_bw",
        }
    }
}

/// What a build can do, by its `--help`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    /// `--use_cuda=`
    pub cuda: bool,
    /// `--use_cuda_bus_id=`
    pub bus_id: bool,
    /// `--use_cuda_dmabuf`
    pub dma_buf: bool,
}

impl Build {
    /// From the text of `--help`.
    #[must_use]
    pub fn of(help: &[u8]) -> Self {
        let help = String::from_utf8_lossy(help);
        Self {
            cuda: help.contains("--use_cuda=") || help.contains("--use_cuda "),
            bus_id: help.contains("--use_cuda_bus_id"),
            dma_buf: help.contains("--use_cuda_dmabuf"),
        }
    }
}

/// Where the buffer shall lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Buffer {
    /// Host memory.
    Host,
    /// The GPU at this address; `number` is its place in the order of addresses, and CUDA's in that order.
    Gpu {
        /// Its address.
        bdf: Bdf,
        /// CUDA's number, with `CUDA_DEVICE_ORDER=PCI_BUS_ID`.
        number: usize,
        /// As a DMA-BUF.
        dma_buf: bool,
    },
}

/// One side of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// Which direction.
    pub test: Test,
    /// The RDMA device, such as `mlx5_0`.
    pub device: &'a str,
    /// Its port.
    pub port: u32,
    /// The buffer.
    pub buffer: Buffer,
    /// Message size.
    pub bytes: u64,
    /// How long, in seconds.
    pub seconds: u64,
    /// Queue pairs.
    pub qps: u32,
    /// The GID's index, where the default does not do.
    pub gid_index: Option<u32>,
    /// The TCP port on which both sides meet.
    pub tcp_port: u16,
    /// The other side; none for the side that waits.
    pub peer: Option<&'a str>,
}

impl Wanted<'_> {
    /// The argument vector.
    ///
    /// # Errors
    /// The build has no option for this buffer.
    pub fn argv(&self, build: Build) -> Result<Vec<String>, Failure> {
        let mut argv: Vec<String> = [
            self.test.program(),
            "-F",
            "--report_gbits",
            "-d",
            self.device,
        ]
        .map(str::to_owned)
        .to_vec();
        argv.push(format!("--ib-port={}", self.port));
        argv.push(format!("--size={}", self.bytes));
        argv.push(format!("--duration={}", self.seconds));
        argv.push(format!("--qp={}", self.qps));
        argv.push(format!("--port={}", self.tcp_port));
        argv.extend(self.gid_index.map(|index| format!("--gid-index={index}")));
        if let Buffer::Gpu {
            bdf,
            number,
            dma_buf,
        } = self.buffer
        {
            if !build.cuda {
                return Err(Failure {
                    kind: Kind::NoCuda,
                    message: format!(
                        "{} --help has no --use_cuda: it was built without CUDA",
                        self.test.program()
                    ),
                });
            }
            argv.push(if build.bus_id {
                format!("--use_cuda_bus_id={bdf}")
            } else {
                format!("--use_cuda={number}")
            });
            if dma_buf {
                // it has to come after the GPU
                if !build.dma_buf {
                    return Err(Failure {
                        kind: Kind::NoDmaBuf,
                        message: format!("{} --help has no --use_cuda_dmabuf", self.test.program()),
                    });
                }
                argv.push("--use_cuda_dmabuf".to_owned());
            }
        }
        argv.extend(self.peer.map(str::to_owned));
        Ok(argv)
    }
}
