//! DMA-BUF: the driver exports GPU memory, the RDMA stack imports it, and no module stands between.
//!
//! It takes the open driver from 515.43.04 on (CUDA 11.7), a GPU of Turing or later, Linux 5.12, and an RDMA
//! stack that registers such memory: in the kernel's own that is on-demand paging (mlx5
//! `mlx5_ib_reg_user_mr_dmabuf`), in another one its `ib_umem_dmabuf_get`.

use super::{Evidence, Input, Missing, Says, Verdict};
use crate::facts::gdr::{Flavour, Stack, Target, numbers};
use crate::facts::version;
use crate::pci::generation::Generation;

/// The first open driver.
const FIRST_OPEN: [u32; 3] = [515, 43, 4];

/// rdma-core since which `ibv_reg_dmabuf_mr` is there.
const RDMA_CORE: u32 = 34;

pub(super) fn verdict(input: &Input, target: &Target) -> Verdict {
    let mut evidence = vec![driver(input, target)];
    evidence.extend(gpus(input));
    evidence.push(kernel(target));
    evidence.push(rdma(target));
    evidence.extend(library(input));
    let says = |what: Says| evidence.iter().any(|e| e.says == what);
    let missing = (says(Says::No) || says(Says::Unknown)).then(|| Missing {
        id: "dma-buf.unavailable".to_owned(),
        unknown: !says(Says::No),
        fix: "use NVIDIA's open kernel modules (515.43.04 or later) on Linux 5.12 or later, with an RDMA stack that registers DMA-BUF memory; or set `gdr.path = \"peermem\"`".to_owned(),
    });
    Verdict { missing, evidence }
}

fn driver(input: &Input, target: &Target) -> Evidence {
    const FACT: &str = "NVIDIA driver";
    let loaded = &input.facts.gdr.driver;
    let (version, flavour, from) = match (loaded.get(), target.driver.get()) {
        (Some(driver), _) if input.runs(target) => (
            Some(driver.version.clone()),
            Some(driver.flavour),
            &loaded.from,
        ),
        (_, Some(file)) => {
            let peermem = target.peermem.get().and_then(|file| file.version.clone());
            let version = file.version.clone().or(peermem);
            (version, file.flavour, &target.driver.from)
        }
        (_, None) => {
            return match &target.driver.unknown {
                Some(why) => Evidence::unknown(FACT, why.clone(), &target.driver.from),
                None => Evidence::no(
                    FACT,
                    format!("none for kernel {}", target.release),
                    &target.driver.from,
                ),
            };
        }
    };
    let shown = version
        .clone()
        .unwrap_or_else(|| "of unknown version".to_owned());
    match flavour {
        None => Evidence::unknown(
            FACT,
            format!("{shown}, open or proprietary is not known"),
            from,
        ),
        Some(Flavour::Proprietary) => Evidence::no(
            FACT,
            format!("{shown}, proprietary, which exports no DMA-BUF"),
            from,
        ),
        Some(Flavour::Open) => {
            let old = version.is_some_and(|v| numbers(&v).as_slice() < FIRST_OPEN.as_slice());
            if old {
                Evidence::no(FACT, format!("{shown}, older than 515.43.04"), from)
            } else {
                Evidence::yes(FACT, format!("{shown}, open"), from)
            }
        }
    }
}

/// An image has no GPUs, and says nothing about them.
fn gpus(input: &Input) -> Option<Evidence> {
    const FACT: &str = "GPUs";
    const FROM: &str = "PCI device ids";
    let mut oldest: Option<Generation> = None;
    for function in input.gpus() {
        let Some(generation) = function.device.and_then(Generation::of) else {
            // The open driver binds to nothing older than Turing.
            if function.driver.as_deref() == Some("nvidia") {
                continue;
            }
            let id = function
                .device
                .map_or("?".to_owned(), |id| format!("{id:04x}"));
            return Some(Evidence::unknown(
                FACT,
                format!(
                    "{}: device 10de:{id} is of a generation not known here",
                    function.bdf
                ),
                FROM,
            ));
        };
        if generation < Generation::Turing {
            return Some(Evidence::no(
                FACT,
                format!("{}: {generation:?}, older than Turing", function.bdf),
                FROM,
            ));
        }
        oldest = Some(oldest.map_or(generation, |o| o.min(generation)));
    }
    oldest.map(|generation| Evidence::yes(FACT, format!("{generation:?} or later"), FROM))
}

fn kernel(target: &Target) -> Evidence {
    const FACT: &str = "kernel";
    let from = format!("/lib/modules/{}", target.release);
    match version(&target.release) {
        None => Evidence::unknown(FACT, format!("{} has no version", target.release), from),
        Some(v) if v < (5, 12) => {
            Evidence::no(FACT, format!("{}, older than 5.12", target.release), from)
        }
        Some(_) => Evidence::yes(FACT, target.release.clone(), from),
    }
}

fn rdma(target: &Target) -> Evidence {
    const FACT: &str = "RDMA stack";
    let core = &target.rdma;
    if let Some(core) = core.get().filter(|core| core.stack == Stack::Ofed) {
        return match core.dma_buf {
            Some(true) => Evidence::yes(FACT, "OFED, registers DMA-BUF memory", &core.path),
            Some(false) => Evidence::no(FACT, "OFED, registers no DMA-BUF memory", &core.path),
            None => Evidence::unknown(FACT, "OFED, its ib_uverbs could not be read", &core.path),
        };
    }
    let Some(config) = target.config.get() else {
        return Evidence::unknown(
            FACT,
            format!(
                "the kernel's configuration: {}",
                target.config.why_missing()
            ),
            &target.config.from,
        );
    };
    let on = |name: &str| config.get(name).is_some_and(|v| v == "y" || v == "m");
    let lacks = [
        "CONFIG_DMA_SHARED_BUFFER",
        "CONFIG_INFINIBAND_USER_MEM",
        "CONFIG_INFINIBAND_ON_DEMAND_PAGING",
    ]
    .into_iter()
    .find(|name| !on(name));
    if let Some(name) = lacks {
        return Evidence::no(
            FACT,
            format!("the kernel's own, without {name}"),
            &target.config.from,
        );
    }
    // The configuration says what was built, not what is installed: some distributions pack the
    // modules by themselves.
    match (core.get(), &core.unknown) {
        (None, None) => Evidence::no(FACT, "no ib_core for this kernel", &core.from),
        (None, Some(why)) => Evidence::unknown(FACT, why.clone(), &core.from),
        (Some(_), _) => Evidence::yes(
            FACT,
            "the kernel's own, with on-demand paging",
            &target.config.from,
        ),
    }
}

/// Containers bring their own; so only what is known to be too old counts.
fn library(input: &Input) -> Option<Evidence> {
    const FACT: &str = "rdma-core";
    let fact = &input.facts.gdr.libibverbs;
    let package: u32 = fact.get()?.split('.').nth(2)?.parse().ok()?;
    Some(if package < RDMA_CORE {
        Evidence::no(FACT, format!("{package}, older than 34"), &fact.from)
    } else {
        Evidence::yes(FACT, package.to_string(), &fact.from)
    })
}
