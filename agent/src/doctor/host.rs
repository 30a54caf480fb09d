//! Questions put to the rest of the node: the kernel log, limits, the fabric manager, a process.

use super::Seen;
use crate::checks::Answer;

/// The checks that lines of the kernel log speak against.
const OF_THE_LOG: [&str; 7] = [
    "iommu.fault",
    "acs.parameter-rejected",
    "dma-buf.topology",
    "link.errors",
    "link.limited",
    "kernel.xid",
    "kernel.rdma-error",
];

/// Lines that are shown of each.
const SHOWN: usize = 3;

/// The log begins where the kernel's buffer does, so what is met is said of what is still in it.
pub(super) fn kernel_log(seen: &Seen) -> Vec<Answer> {
    let fact = &seen.host.kernel_log;
    let subject = "kernel log";
    let Some(lines) = fact.get() else {
        let unknown = |id: &&'static str| {
            Answer::unknown(
                id,
                subject,
                fact.why_missing(),
                "run it as root on the node",
            )
        };
        return OF_THE_LOG.iter().map(unknown).collect();
    };
    let one = |id: &&'static str| {
        let of_it: Vec<&str> = lines
            .iter()
            .filter(|(of, _)| of == id)
            .map(|(_, line)| line.as_str())
            .collect();
        if of_it.is_empty() {
            return Answer::met(id, subject, format!("{}: no such line is in it", fact.from));
        }
        let fix = crate::checks::registry::find(id).map_or("", |(_, entry)| entry.fix);
        let mut answer = Answer::failed(id, subject, "", fix);
        // The last ones are the ones that matter now.
        let first = of_it.len().saturating_sub(SHOWN);
        answer.evidence = of_it
            .iter()
            .skip(first)
            .map(|line| format!("{}: {line}", fact.from))
            .collect();
        if first > 0 {
            answer.evidence.push(format!("and {first} earlier lines"));
        }
        answer
    };
    OF_THE_LOG.iter().map(one).collect()
}

const MEMLOCK: &str = "host.memlock";

/// What registers memory has to lock it. PAM gives what the files say, and systemd's 8 MiB where they say nothing.
pub(super) fn memlock(seen: &Seen) -> Vec<Answer> {
    let mut answers = vec![files(seen)];
    if let Some(process) = &seen.host.process {
        let subject = format!("process {}", process.pid);
        let fact = &process.memlock;
        let fix = "raise it where the process is started: LimitMEMLOCK= of the unit, --ulimit memlock=-1 of the container";
        answers.push(match fact.get() {
            Some(limit) if limit == "unlimited" => {
                Answer::met(MEMLOCK, subject, format!("{}: {limit}", fact.from))
            }
            Some(limit) => Answer::failed(
                MEMLOCK,
                subject,
                format!("{}: {limit} bytes", fact.from),
                fix,
            ),
            None => Answer::unknown(
                MEMLOCK,
                subject,
                fact.why_missing(),
                "run it as root while the process runs",
            ),
        });
    }
    answers
}

fn files(seen: &Seen) -> Answer {
    let fact = &seen.host.memlock;
    let subject = "limits.conf";
    let Some(lines) = fact.get() else {
        return Answer::unknown(
            MEMLOCK,
            subject,
            fact.why_missing(),
            "run it as root on the node",
        );
    };
    let fix = "put `* - memlock unlimited` into a file in /etc/security/limits.d; schedulers and containers have limits of their own";
    let mut last: [Option<(&str, bool)>; 2] = [None, None];
    for (place, line) in lines {
        let mut words = line.split_whitespace();
        let (Some("*"), Some(kind), Some(_), Some(value)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let unlimited = matches!(value, "unlimited" | "infinity" | "-1");
        let [soft, hard] = &mut last;
        if matches!(kind, "soft" | "-") {
            *soft = Some((place, unlimited));
        }
        if matches!(kind, "hard" | "-") {
            *hard = Some((place, unlimited));
        }
    }
    match last {
        [Some((soft, true)), Some((_, true))] => {
            Answer::met(MEMLOCK, subject, format!("{soft}: unlimited for everybody"))
        }
        [None, None] => Answer::failed(
            MEMLOCK,
            subject,
            format!("{}: no line raises memlock for everybody", fact.from),
            fix,
        ),
        [soft, hard] => {
            let place = [soft, hard]
                .into_iter()
                .flatten()
                .find(|(_, unlimited)| !unlimited);
            let said = match place {
                Some((place, _)) => format!("{place}: it is limited"),
                None => format!("{}: only one of soft and hard limit is raised", fact.from),
            };
            Answer::failed(MEMLOCK, subject, said, fix)
        }
    }
}

const FABRIC: &str = "platform.fabric-manager";

/// NVSwitches are PCI bridges of NVIDIA's with class 0680 (other).
pub(super) fn fabric_manager(seen: &Seen) -> Vec<Answer> {
    let is_switch =
        |f: &&crate::pci::RawFunction| f.vendor == Some(0x10de) && f.class16() == Some(0x0680);
    let switches = seen.node.functions.iter().filter(is_switch).count();
    if seen.node.functions.is_empty() {
        return vec![Answer::unknown(
            FABRIC,
            "NVSwitches",
            "no PCI function was read",
            "run it on the node",
        )];
    }
    if switches == 0 {
        return vec![Answer::met(
            FABRIC,
            "NVSwitches",
            "/sys/bus/pci/devices: there is none",
        )];
    }
    let fact = &seen.host.fabric_manager;
    let subject = format!("{switches} NVSwitches");
    vec![match fact.get() {
        Some(true) => Answer::met(FABRIC, subject, format!("{}: it runs", fact.from)),
        Some(false) => Answer::failed(
            FABRIC,
            subject,
            format!("{}: no process is in it", fact.from),
            "systemctl start nvidia-fabricmanager; its version has to be the driver's",
        ),
        None => Answer::unknown(
            FABRIC,
            subject,
            fact.why_missing(),
            "look at `systemctl status nvidia-fabricmanager`",
        ),
    }]
}

/// Every CUDA process maps the GPU's devices, so this never proves GPUDirect; that nothing is mapped proves that
/// it is the wrong process.
pub(super) fn process(seen: &Seen) -> Vec<Answer> {
    const ID: &str = "process.devices";
    let Some(process) = &seen.host.process else {
        return Vec::new();
    };
    let subject = format!("process {}", process.pid);
    let fact = &process.devices;
    let Some(devices) = fact.get() else {
        let fix = "run it as root, with the number of a process that runs";
        return vec![Answer::unknown(ID, subject, fact.why_missing(), fix)];
    };
    let has = |start: &str| devices.iter().any(|device| device.starts_with(start));
    let evidence = format!(
        "{}: {}",
        fact.from,
        if devices.is_empty() {
            "no GPU and no RDMA device".to_owned()
        } else {
            devices.join(", ")
        }
    );
    vec![if has("/dev/nvidia") && has("/dev/infiniband/") {
        Answer::met(
            ID,
            subject,
            format!("{evidence} (weak evidence: this is so without GPUDirect, too)"),
        )
    } else {
        Answer::failed(
            ID,
            subject,
            evidence,
            "look at the process that runs NCCL, and at its log",
        )
    }]
}
