//! How NIC drivers reach GPU memory on this node: DMA-BUF or nvidia-peermem, with the evidence.

use gdr_policy::Policy;
use schemars::JsonSchema;
use serde::Serialize;

use crate::facts::{Facts, version};

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

/// The decision and what led to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Decision {
    /// The way.
    pub path: GdrPath,
    /// The finding's id when there is none.
    pub missing: Option<String>,
    /// What led to it, in order.
    pub evidence: Vec<String>,
}

/// Decides by the policy and by what is there.
#[must_use]
pub fn decide(policy: &Policy, facts: &Facts) -> Decision {
    match policy.gdr.path {
        gdr_policy::GdrPath::DmaBuf => {
            let (works, mut evidence) = dma_buf(facts);
            evidence.insert(0, "the policy asks for dma-buf".to_owned());
            pick(works, GdrPath::DmaBuf, "dma-buf.unavailable", evidence)
        }
        gdr_policy::GdrPath::Peermem => {
            let (works, mut evidence) = peermem(facts);
            evidence.insert(0, "the policy asks for peermem".to_owned());
            pick(works, GdrPath::Peermem, "peermem.not-installed", evidence)
        }
        gdr_policy::GdrPath::Auto => {
            let (works, mut evidence) = dma_buf(facts);
            if works {
                return pick(true, GdrPath::DmaBuf, "", evidence);
            }
            let (works, more) = peermem(facts);
            evidence.extend(more);
            pick(works, GdrPath::Peermem, "peermem.not-installed", evidence)
        }
    }
}

fn pick(works: bool, path: GdrPath, missing: &str, evidence: Vec<String>) -> Decision {
    if works {
        Decision {
            path,
            missing: None,
            evidence,
        }
    } else {
        Decision {
            path: GdrPath::None,
            missing: Some(missing.to_owned()),
            evidence,
        }
    }
}

/// DMA-BUF needs the open driver from 515 on, Linux 5.12, and on-demand paging in the RDMA stack
/// (mlx5 `reg_user_mr_dmabuf`).
fn dma_buf(facts: &Facts) -> (bool, Vec<String>) {
    let mut evidence = Vec::new();
    let driver = facts.modules.nvidia_driver.get();
    let open = match driver {
        Some(line) if line.contains("Open Kernel Module") => {
            evidence.push("the open NVIDIA driver is loaded".to_owned());
            true
        }
        Some(_) => {
            evidence.push(
                "the proprietary NVIDIA driver is loaded, which has no DMA-BUF export".to_owned(),
            );
            false
        }
        None => {
            evidence.push("no NVIDIA driver is loaded".to_owned());
            false
        }
    };
    let kernel = match facts.running.release.get().and_then(|r| version(r)) {
        Some(v) if v >= (5, 12) => true,
        Some((major, minor)) => {
            evidence.push(format!("Linux {major}.{minor} is older than 5.12"));
            false
        }
        None => {
            evidence.push("the running kernel's version is not known".to_owned());
            false
        }
    };
    let rdma = match facts.modules.config.get() {
        Some(config) => {
            let on = |name: &str| config.get(name).is_some_and(|v| v == "y" || v == "m");
            let all = on("CONFIG_INFINIBAND_ON_DEMAND_PAGING") && on("CONFIG_INFINIBAND_USER_MEM");
            evidence.push(if all {
                "the kernel's RDMA stack has on-demand paging".to_owned()
            } else {
                "the kernel's RDMA stack has no on-demand paging, which DMA-BUF registration needs"
                    .to_owned()
            });
            all
        }
        None => {
            evidence.push("the kernel's configuration could not be read".to_owned());
            false
        }
    };
    (open && kernel && rdma, evidence)
}

fn peermem(facts: &Facts) -> (bool, Vec<String>) {
    let running = facts.running.release.get();
    let kernels = facts
        .modules
        .peermem
        .iter()
        .filter(|(release, _)| running.is_none_or(|r| r == *release));
    let mut evidence = Vec::new();
    let mut works = false;
    for (release, file) in kernels {
        match (&file.value, &file.unknown) {
            (Some(file), _) => {
                evidence.push(format!("kernel {release} has {file}"));
                works = true;
            }
            (None, Some(why)) => evidence.push(format!("kernel {release}: {why}")),
            (None, None) => evidence.push(format!("kernel {release} has no nvidia-peermem module")),
        }
    }
    if evidence.is_empty() {
        evidence.push("no kernel with modules was found".to_owned());
    }
    (works, evidence)
}
