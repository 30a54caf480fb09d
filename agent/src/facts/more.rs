//! What no plan needs, and reports do: it costs more to read than the facts that a plan is made from.

use super::{Fact, RdmaDevice, gpus, nccl_env, nccl_minor, rdma_devices};
use crate::gpu::Gpus;
use crate::measure::Measured;
use crate::nccl_env::{Known, NcclEnv};
use crate::pci::RawFunction;
use crate::pci::topology::Topology;
use crate::sys::{Ask, Root};

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct More {
    /// The GPUs' windows, and what nvidia-smi said if it was asked.
    pub gpus: Gpus,
    /// RDMA devices; none if they were not looked at.
    pub rdma: Option<Fact<Vec<RdmaDevice>>>,
    /// NCCL's minor version (26 for 2.26), where one is known and no other contradicts it.
    pub nccl_minor: Option<u32>,
    /// What perftest measured of each pair; none if it was not run.
    pub measured: Option<Vec<Measured>>,
}

impl More {
    /// Reads. With `ask`, nvidia-smi is run where it is there, and may take so long. The NCCL environment of running
    /// processes comes beside it, to take the place of that of the files alone.
    #[must_use]
    pub fn read(
        root: &Root,
        functions: &[RawFunction],
        topology: &Topology,
        ask: Option<Ask<'_>>,
    ) -> (Self, NcclEnv) {
        let env = nccl_env(root);
        let more = Self {
            gpus: gpus(root, functions, topology, ask),
            rdma: Some(rdma_devices(root)),
            nccl_minor: nccl_minor(root, &env),
            measured: None,
        };
        (more, env)
    }

    /// What the judgement of NCCL's settings takes.
    #[must_use]
    pub fn known(&self) -> Known<'_> {
        Known {
            devices: self
                .rdma
                .as_ref()
                .and_then(|fact| fact.get())
                .map(Vec::as_slice),
            minor: self.nccl_minor,
        }
    }
}
