//! How NIC drivers reach GPU memory on this node: DMA-BUF or nvidia-peermem, with the evidence.
//!
//! The question is asked of one kernel: the one that runs, or in an image the one that boots by default. The
//! others that can boot are asked too, so that the plan can say what an update will break.

mod dma_buf;
mod evidence;
mod peermem;
mod pick;

use gdr_policy::Policy;
use schemars::JsonSchema;
use serde::Serialize;

use crate::facts::Facts;
use crate::facts::gdr::{Flavour, PEERMEM, Target};
use crate::pci::RawFunction;
use crate::pci::generation::{NVIDIA, without_gdr};
use crate::pci::select::selects;

pub use evidence::{Evidence, Says};

/// The way that is in use or will be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GdrPath {
    /// The kernel's DMA-BUF, without any module.
    DmaBuf,
    /// The `nvidia-peermem` module.
    Peermem,
    /// Neither can work, or what was read does not tell.
    None,
}

/// What there is no way around.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Missing {
    /// The finding's id.
    pub id: String,
    /// Whether it is not known, rather than known not to be there.
    pub unknown: bool,
    /// What to do.
    pub fix: String,
}

/// The decision and what led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Decision {
    /// The way.
    pub path: GdrPath,
    /// The kernel that it holds for; none where no kernel was found.
    pub kernel: Option<String>,
    /// Why there is none.
    pub missing: Option<Missing>,
    /// What led to it, in order.
    pub evidence: Vec<Evidence>,
    /// The other kernels that can boot and would not have this way.
    pub others: Vec<OtherKernel>,
    /// The modules that kernels lack for the way that was chosen, or for the one that comes nearest.
    pub modules: Vec<MissingModule>,
}

/// Another kernel of the same node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OtherKernel {
    /// Its release.
    pub kernel: String,
    /// The way that it has.
    pub path: GdrPath,
    /// Why it has none.
    pub missing: Option<Missing>,
}

/// A module that a kernel would need and does not have, or not in a form that can work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingModule {
    /// The kernel's release: a package has to be for exactly this one.
    pub kernel: String,
    /// The module, as modprobe knows it.
    pub module: String,
    /// The finding's id: a stub is not cured by installing the same again.
    pub finding: String,
    /// The driver's version that it has to be of.
    pub version: Option<String>,
    /// Open or proprietary.
    pub flavour: Option<Flavour>,
}

/// Everything that a decision is made from.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// What should be.
    pub policy: &'a Policy,
    /// What is.
    pub facts: &'a Facts,
    /// The PCI functions.
    pub functions: &'a [RawFunction],
}

impl<'a> Input<'a> {
    /// The functions that the policy counts as GPUs and that NVIDIA made.
    fn gpus(&self) -> impl Iterator<Item = &'a RawFunction> {
        let devices = &self.policy.devices;
        let gpu = move |vendor, device, class| devices.is_gpu(vendor, device, class);
        self.functions
            .iter()
            .filter(move |f| f.vendor == Some(NVIDIA) && selects(&gpu, f))
    }

    /// Whether a kernel is the one that runs.
    fn runs(&self, target: &Target) -> bool {
        !self.facts.bake && self.facts.running.release.get() == Some(&target.release)
    }
}

/// Can a way work? With what it was told by.
struct Verdict {
    missing: Option<Missing>,
    evidence: Vec<Evidence>,
}

/// Decides by the policy and by what is there.
#[must_use]
pub fn decide(input: &Input) -> Decision {
    if let Some(decision) = no_gdr(input) {
        return decision;
    }
    let Some(target) = pick::kernel(input) else {
        let missing = Missing {
            id: "peermem.not-installed".to_owned(),
            unknown: true,
            fix: "install a kernel, or run it on the node".to_owned(),
        };
        return Decision {
            path: GdrPath::None,
            kernel: None,
            missing: Some(missing),
            evidence: vec![Evidence::unknown(
                "kernels",
                "no kernel with modules was found",
                "/lib/modules",
            )],
            others: Vec::new(),
            modules: Vec::new(),
        };
    };
    let (path, missing, evidence) = one(input, target);
    let mut decision = Decision {
        path,
        kernel: Some(target.release.clone()),
        missing,
        evidence,
        others: Vec::new(),
        modules: Vec::new(),
    };
    for kernel in pick::candidates(input) {
        if kernel.release != target.release {
            let (path, missing, _) = one(input, kernel);
            if path != decision.path || missing.is_some() {
                decision.others.push(OtherKernel {
                    kernel: kernel.release.clone(),
                    path,
                    missing,
                });
            }
        }
        decision
            .modules
            .extend(module(input, decision.path, kernel));
    }
    decision
}

/// The way of one kernel.
fn one(input: &Input, target: &Target) -> (GdrPath, Option<Missing>, Vec<Evidence>) {
    let asked = |way: &str| Evidence::note("policy", format!("gdr.path = \"{way}\""), "the policy");
    match input.policy.gdr.path {
        gdr_policy::GdrPath::DmaBuf => {
            let mut verdict = dma_buf::verdict(input, target);
            verdict.evidence.insert(0, asked("dma-buf"));
            finish(GdrPath::DmaBuf, verdict)
        }
        gdr_policy::GdrPath::Peermem => {
            let mut verdict = peermem::verdict(input, target);
            verdict.evidence.insert(0, asked("peermem"));
            finish(GdrPath::Peermem, verdict)
        }
        gdr_policy::GdrPath::Auto => {
            let first = dma_buf::verdict(input, target);
            if first.missing.is_none() {
                return finish(GdrPath::DmaBuf, first);
            }
            let mut second = peermem::verdict(input, target);
            // Where the other way is only not known, nothing is known about the node.
            if let (Some(a), Some(b)) = (&first.missing, &mut second.missing)
                && a.unknown
                && !b.unknown
            {
                b.unknown = true;
            }
            second.evidence.splice(0..0, first.evidence);
            finish(GdrPath::Peermem, second)
        }
    }
}

fn finish(path: GdrPath, verdict: Verdict) -> (GdrPath, Option<Missing>, Vec<Evidence>) {
    let Verdict { missing, evidence } = verdict;
    let path = if missing.is_none() {
        path
    } else {
        GdrPath::None
    };
    (path, missing, evidence)
}

/// Some platforms have no memory that a NIC could reach, whatever is installed.
fn no_gdr(input: &Input) -> Option<Decision> {
    let (function, chip) = input
        .gpus()
        .find_map(|function| Some((function, without_gdr(function.device?)?)))?;
    let missing = Missing {
        id: "platform.no-gdr".to_owned(),
        unknown: false,
        fix: "take `gdr-path` out of `verify.require`: NCCL goes through host memory here, which on this platform is the GPU's too".to_owned(),
    };
    Some(Decision {
        path: GdrPath::None,
        kernel: None,
        missing: Some(missing),
        evidence: vec![Evidence::no(
            "GPU",
            format!("{} is a {chip}, which has no GPUDirect RDMA", function.bdf),
            "PCI device id",
        )],
        others: Vec::new(),
        modules: Vec::new(),
    })
}

/// What a kernel lacks for nvidia-peermem, where that is the way or there is none.
fn module(input: &Input, path: GdrPath, target: &Target) -> Option<MissingModule> {
    if path == GdrPath::DmaBuf || input.policy.gdr.path == gdr_policy::GdrPath::DmaBuf {
        return None;
    }
    let missing = peermem::of_file(input, target)
        .missing
        .filter(|missing| !missing.unknown)?;
    let driver = input.facts.gdr.driver.get();
    let loaded = driver.filter(|_| !input.facts.builders_runs());
    let file = target.driver.get();
    Some(MissingModule {
        kernel: target.release.clone(),
        module: PEERMEM.to_owned(),
        finding: missing.id,
        version: file
            .and_then(|file| file.version.clone())
            .or_else(|| loaded.map(|driver| driver.version.clone())),
        flavour: file
            .and_then(|file| file.flavour)
            .or_else(|| loaded.map(|driver| driver.flavour)),
    })
}
