//! Running perftest on the machine: one GPU-NIC pair, or all that a policy covers. What it printed is read and judged by
//! [`crate::bandwidth`].

mod pair;
mod record;
mod side;

use std::time::{Duration, Instant};

use gdr_policy::{GdrPath, Policy};
use serde::{Deserialize, Serialize};

use crate::bandwidth::{Buffer, Build, Kind, Run, Test};
use crate::facts::rdma_devices;
use crate::pci::Bdf;
use crate::pci::topology::Topology;
use crate::reboot::gpus_idle;
use crate::sys::{Root, clock};

pub use pair::{Ceiling, NoDevice, Pair, Side, pair, pairs};
pub use record::{recorded, write_record};
pub use side::{How, Peer, build, failed, missing, name, run};

/// The TCP port on which both sides meet, as perftest's own default.
pub const PORT: u16 = 18515;
/// Enough for one message size; a node has up to 16 pairs, and each is tested twice.
const SECONDS: u64 = 3;
/// Large enough for the path to be what counts.
pub const BYTES: u64 = 1 << 20;
/// Queue pairs.
pub const QPS: u32 = 2;
/// With less time left no test is begun: CUDA alone takes seconds to start.
const LEAST: Duration = Duration::from_secs(8);

/// What reading the checks and recording their result may take before a trial's deadline.
const RESERVE: Duration = Duration::from_secs(30);

/// When a measurement has to be over: a trial's in time for its deadline, which counts from the boot; another after as long.
#[must_use]
pub fn until(root: &Root, policy: &Policy, on_trial: bool) -> Instant {
    let deadline = Duration::from_secs(policy.trial.deadline.as_secs());
    let left = match on_trial && root.is_live() {
        true => deadline.saturating_sub(root.since_boot() + RESERVE),
        false => deadline,
    };
    clock::now() + left
}

/// What was measured of one GPU-NIC pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The GPU.
    pub gpu: Bdf,
    /// The NIC.
    pub nic: Bdf,
    /// Runs on host memory and on GPU memory.
    pub runs: Vec<Run>,
    /// What the link can carry, where that is known.
    pub link: Option<Ceiling>,
    /// Why there is not a run of each.
    pub why_not: Option<String>,
}

/// The two buffers of a pair. GPU memory comes the way that the policy wants: nvidia-peermem only where it says so or the
/// build has nothing else.
#[must_use]
pub fn buffers(policy: &Policy, pair: &Pair, build: Build) -> [Buffer; 2] {
    let peermem = policy.gdr.path == GdrPath::Peermem || !build.dma_buf;
    let gpu = Buffer::Gpu {
        bdf: pair.gpu,
        number: pair.number,
        dma_buf: !peermem,
    };
    [Buffer::Host, gpu]
}

/// Tests every pair that the policy's selectors find, one after the other, as its `[verify.bandwidth]` says, until there is
/// no time left. Whatever goes wrong is in the answer.
#[must_use]
pub fn all(
    root: &Root,
    policy: &Policy,
    topology: &Topology,
    until: Instant,
    on_trial: bool,
    tell: &dyn Fn(&str),
) -> Vec<Measured> {
    let devices = rdma_devices(root);
    let devices = devices.get().map(Vec::as_slice).unwrap_or_default();
    let test = Test::Write;
    let build = match build(root, test) {
        Ok(Some(build)) => Ok(build),
        Ok(None) => Err(missing(test)),
        Err(e) => Err(failed(test.program(), Kind::Other, e.to_string())),
    };
    let peer = match &policy.verify.bandwidth {
        Some(bandwidth) if !bandwidth.peer.is_loopback() => Peer::Host(bandwidth.peer.as_str()),
        _ => Peer::Loopback,
    };
    let mut done: Vec<(Side, Run)> = Vec::new();
    let mut measured = Vec::new();
    for (at, (gpu, nic)) in (0u16..).zip(pairs(topology, devices)) {
        // Each time anew: jobs begin when they like. A trial has to be judged, whatever has begun beside it.
        let busy = gpus_idle(root).err().filter(|_| !on_trial);
        let mut one = Measured {
            gpu,
            nic,
            runs: Vec::new(),
            link: None,
            why_not: None,
        };
        match (&build, pair(topology, devices, Some(gpu), Some(nic), None)) {
            (Err(run), _) => one.runs.push(run.clone()),
            // What is measured beside a job says nothing, and the job would suffer.
            _ if busy.is_some() => one.why_not.clone_from(&busy),
            (_, Err(why)) => one.why_not = Some(format!("{}: {}", why.message, why.help)),
            (Ok(build), Ok(pair)) => {
                one.link.clone_from(&pair.link);
                for (next, buffer) in (0u16..).zip(buffers(policy, &pair, *build)) {
                    // within the node a NIC's own speed is the same for all GPUs; elsewhere somebody waits for each test
                    let known = done.iter().find(|(side, _)| *side == pair.nic);
                    if let (Buffer::Host, Peer::Loopback, Some((_, run))) = (buffer, peer, known) {
                        one.runs.push(run.clone());
                        continue;
                    }
                    if until.saturating_duration_since(clock::now()) < LEAST {
                        one.why_not = Some("no time was left for it".to_owned());
                        break;
                    }
                    let name = name(test, &pair, buffer);
                    tell(&format!("{name}, {SECONDS} s ..."));
                    let how = How {
                        test,
                        peer,
                        bytes: BYTES,
                        seconds: SECONDS,
                        qps: QPS,
                        gid_index: None,
                        tcp_port: PORT.saturating_add(at * 2 + next),
                        limit: None,
                        until: Some(until),
                    };
                    let run = run(root, &how, &pair, buffer, *build)
                        .unwrap_or_else(|e| failed(&name, Kind::Other, e.to_string()));
                    if buffer == Buffer::Host {
                        done.push((pair.nic.clone(), run.clone()));
                    }
                    one.runs.push(run);
                }
            }
        }
        measured.push(one);
    }
    measured
}
