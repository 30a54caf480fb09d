//! Can NIC drivers reach GPU memory here, and by which way?

use super::{Answer, Input};
use crate::facts::gdr::InUse;
use crate::kmod::{Attempt, Refused, classify, fold};
use crate::plain::counted;
use crate::plan::decide;
use crate::plan::gdr::{self, Decision, GdrPath};

const NOT_LOADED: &str = "peermem.not-loaded";

pub(super) fn ask(input: &Input) -> Vec<Answer> {
    let decision = decide(&gdr::Input {
        policy: input.policy,
        facts: input.facts,
        functions: input.functions,
    });
    let mut answer = match decision.path {
        GdrPath::DmaBuf => Answer::met("dma-buf.unavailable", "DMA-BUF", ""),
        GdrPath::Peermem => peermem(input),
        GdrPath::None => none(&decision),
    };
    answer.evidence.retain(|line| !line.is_empty());
    let chain = decision.evidence.iter().map(ToString::to_string);
    answer.evidence.splice(0..0, chain);
    if decision.path != GdrPath::None {
        answer.evidence.extend(in_use(&input.facts.gdr.in_use));
    }
    vec![answer]
}

fn none(decision: &Decision) -> Answer {
    let Some(missing) = &decision.missing else {
        return Answer::unknown(NOT_LOADED, "GPU memory", "", "");
    };
    let id = id(&missing.id);
    if missing.unknown {
        Answer::unknown(id, "GPU memory", "", missing.fix.as_str())
    } else {
        Answer::failed(id, "GPU memory", "", missing.fix.as_str())
    }
}

/// The ids that a decision can have.
fn id(id: &str) -> &'static str {
    [
        "dma-buf.unavailable",
        "platform.no-gdr",
        "peermem.blocked",
        "peermem.unreadable",
        Refused::Stub.id(),
        Refused::AbiMismatch.id(),
        Refused::NoApi.id(),
        Refused::Unsigned.id(),
        Refused::NotInstalled.id(),
        Refused::NameTaken.id(),
        Refused::WrongKernel.id(),
        Refused::BadOption.id(),
    ]
    .into_iter()
    .find(|known| *known == id)
    .unwrap_or(Refused::Unknown.id())
}

/// The module can work: is it loaded, and has it registered?
fn peermem(input: &Input) -> Answer {
    let subject = "nvidia-peermem";
    let loaded = &input.facts.modules.loaded;
    let Some(names) = loaded.get() else {
        let fix = "run it on the booted node";
        return Answer::unknown(NOT_LOADED, subject, loaded.why_missing(), fix);
    };
    if names.contains(&fold(subject)) {
        let clients = &input.facts.gdr.in_use.clients;
        let registered = clients.get().is_none_or(|clients| {
            let mut names = clients.iter().map(|client| client.name.as_str());
            names.any(|name| name == "nv_mem" || name == "nv_mem_nc")
        });
        if registered {
            return Answer::met(
                NOT_LOADED,
                subject,
                format!("{}: it is loaded", loaded.from),
            );
        }
        return Answer::failed(
            Refused::Unknown.id(),
            subject,
            format!(
                "{}: it is loaded, and no client nv_mem is there",
                clients.from
            ),
            "unload and load it again: `rmmod nvidia_peermem && modprobe nvidia-peermem`",
        );
    }
    let not = format!("{}: it is not loaded", loaded.from);
    if names.contains("nv_peer_mem") {
        let why = format!("{not}, and nv_peer_mem is");
        return Answer::failed(
            Refused::NameTaken.id(),
            subject,
            why,
            Refused::NameTaken.fix(),
        );
    }
    // An attempt that failed may still be in the kernel's log.
    let refused = &input.facts.gdr.in_use.refused;
    let lines = refused.get().filter(|lines| !lines.is_empty());
    if let Some(lines) = lines {
        let (cause, evidence) = classify(&Attempt {
            stderr: "",
            log: Some(lines),
            stub: None,
        });
        if cause != Refused::Unknown {
            let mut answer = Answer::failed(cause.id(), subject, not, cause.fix());
            answer.evidence.extend(evidence);
            return answer;
        }
    }
    let fix = "modprobe nvidia-peermem, and look at what the kernel log says about it";
    Answer::failed(NOT_LOADED, subject, not, fix)
}

/// What is in use now decides nothing: a node without a job has nothing in use.
fn in_use(now: &InUse) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(count) = now.refcount.get().filter(|count| **count > 0) {
        lines.push(format!(
            "{}: {} of GPUs registered",
            now.refcount.from,
            counted(
                usize::try_from(*count).unwrap_or(usize::MAX),
                "memory region"
            )
        ));
    }
    for client in now.clients.get().into_iter().flatten() {
        if let Some(count) = client.registered.as_ref().filter(|count| **count > 0) {
            lines.push(format!(
                "{}: {} registered",
                client.path,
                counted(
                    usize::try_from(*count).unwrap_or(usize::MAX),
                    "memory region"
                )
            ));
        }
    }
    let attached = now.dma_buf.get().into_iter().flatten();
    let mut devices: Vec<&str> = attached
        .flat_map(|buffer| buffer.devices.iter().map(String::as_str))
        .collect();
    devices.sort_unstable();
    devices.dedup();
    if !devices.is_empty() {
        lines.push(format!(
            "{}: GPU memory is attached to {}",
            now.dma_buf.from,
            devices.join(", ")
        ));
    }
    for (path, text) in &now.client_files {
        lines.push(format!("{path}: {}", text.replace('\n', "; ")));
    }
    lines
}
