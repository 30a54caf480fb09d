//! What is wrong with the GPUs.

use super::window::SMALL;
use super::{Asked, Gpus, Smi, SmiGpu, Window};
use crate::finding::Finding;

/// The findings, the worst first.
#[must_use]
pub fn findings(gpus: &Gpus) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(asked("nvidia-smi -q -x", &gpus.smi));
    for window in &gpus.windows {
        let smi = gpus
            .smi
            .get()
            .and_then(|smi| smi.gpus.iter().find(|g| g.bdf == Some(window.bdf)));
        findings.extend(small(window, smi));
    }
    if let Some(smi) = gpus.smi.get() {
        findings.extend(from_smi(smi, &gpus.windows));
    }
    // one that hangs is told once
    if !matches!(gpus.smi, Asked::Hung(_)) {
        findings.extend(asked("nvidia-smi topo -m", &gpus.topo));
    }
    findings
}

fn asked<T>(command: &str, answer: &Asked<T>) -> Option<Finding> {
    match answer {
        Asked::Hung(seconds) => Some(Finding::failed(
            "gpu.smi-hung",
            command,
            vec![format!("it did not end within {seconds} s and was stopped")],
            "a GPU or its driver does not answer: look for Xid in the kernel log (`dmesg | grep -i xid`), drain the node, reset the GPU or reboot",
        )),
        Asked::Failed(message) => Some(Finding::unknown(
            "gpu.smi-failed",
            command,
            vec![message.clone()],
            "look whether the nvidia module is loaded and has the version of the user-space driver (`cat /proc/driver/nvidia/version`)",
        )),
        Asked::No | Asked::Said(_) => None,
    }
}

/// What is wrong with a window into a GPU's memory; `smi` says how much memory that is.
pub(crate) fn small(window: &Window, smi: Option<&SmiGpu>) -> Option<Finding> {
    let subject = window.bdf.to_string();
    let dir = format!("/sys/bus/pci/devices/{}", window.bdf);
    let (Some(bar), Some(bytes)) = (window.bar, window.bytes) else {
        return Some(Finding::unknown(
            "bar1.small",
            subject,
            vec![format!("{dir}/resource: no prefetchable 64-bit BAR")],
            "an unassigned BAR is the firmware's doing: look for `can't assign` in the kernel log, and enable Above 4G Decoding",
        ));
    };
    let mut evidence = vec![format!("{dir}/resource: BAR {bar} has {} MiB", bytes >> 20)];
    if !window.placed {
        evidence.push("the kernel found no room for it".to_owned());
        let fix = "make the firmware's MMIO window above 4 GiB larger (MMIO High Size), or let the kernel arrange it: `pci=realloc`";
        return Some(Finding::failed("bar1.small", subject, evidence, fix));
    }
    let memory = smi.and_then(|gpu| gpu.fb_mib).map(|mib| mib << 20);
    evidence.extend(memory.map(|bytes| format!("the GPU has {} MiB of memory", bytes >> 20)));
    let larger: Vec<String> = window
        .sizes
        .iter()
        .filter(|size| **size > bytes)
        .map(|size| format!("{} MiB", size >> 20))
        .collect();
    if !larger.is_empty() {
        let from = window.sizes_from.as_deref().unwrap_or("Resizable BAR");
        evidence.push(format!("{from}: it could have {}", larger.join(", ")));
    }
    if bytes <= SMALL {
        let fix = if larger.is_empty() {
            "256 MiB is what a GPU shows where no large window was placed: enable Above 4G Decoding and a large MMIO window (MMIO High Size) in the firmware, look at the virtual machine's MMIO window, then power-cycle; workstation cards may have to be switched to compute mode (displaymodeselector)"
        } else {
            "enable Above 4G Decoding and Resizable BAR in the firmware, then power-cycle; NVIDIA's driver resizes it itself only with NVreg_EnableResizableBar=1"
        };
        return Some(Finding::failed("bar1.small", subject, evidence, fix));
    }
    let fix = match memory {
        Some(memory) if bytes >= memory => return None,
        Some(_) if larger.is_empty() => {
            "no more memory than this can be registered with NICs at a time: make the firmware's MMIO window larger"
        }
        None if larger.is_empty() => return None,
        _ => {
            "no more memory than this can be registered with NICs at a time: enable Resizable BAR and a larger MMIO window in the firmware, then power-cycle; where the window already covers the GPU's memory (`nvidia-smi -q -d MEMORY`) nothing is lost"
        }
    };
    Some(Finding::warning("bar1.small", subject, evidence, fix))
}

/// What nvidia-smi says of a link with fewer lanes than both ends have.
pub(crate) fn narrow(gpu: &SmiGpu) -> Option<String> {
    let (now, max) = gpu.width.current.zip(gpu.width.max)?;
    (now < max).then(|| format!("nvidia-smi: x{now} of x{max}"))
}

fn from_smi(smi: &Smi, windows: &[Window]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for gpu in &smi.gpus {
        let subject = gpu.bdf.map_or("a GPU".to_owned(), |bdf| bdf.to_string());
        if !gpu.sick.is_empty() {
            let evidence = gpu
                .sick
                .iter()
                .map(|said| format!("nvidia-smi: {said}"))
                .collect();
            let fix = "look for Xid in the kernel log, drain the node and reset the GPU (`nvidia-smi -r`) or reboot";
            findings.push(Finding::failed("gpu.lost", subject.clone(), evidence, fix));
        }
        if let Some(state) = gpu
            .fabric_state
            .as_deref()
            .filter(|state| *state != "Completed")
        {
            let status = gpu.fabric_status.as_deref().unwrap_or("-");
            findings.push(Finding::failed(
                "gpu.fabric",
                subject.clone(),
                vec![format!("nvidia-smi: fabric state {state}, status {status}")],
                "CUDA does not start before the GPU is in the NVSwitch fabric: start nvidia-fabricmanager, in the driver's very version, and look at its log",
            ));
        } else if let Some(status) = gpu
            .fabric_status
            .as_deref()
            .filter(|status| *status != "Success")
        {
            findings.push(Finding::failed(
                "gpu.fabric",
                subject.clone(),
                vec![format!("nvidia-smi: fabric status {status}")],
                "look at the log of nvidia-fabricmanager",
            ));
        }
        if let Some(evidence) = narrow(gpu) {
            findings.push(Finding::warning(
                "link.degraded",
                subject.clone(),
                vec![evidence],
                "reseat the card or the riser, and look for AER errors in the kernel log",
            ));
        }
        if gpu.persistence == Some(false) {
            findings.push(Finding::warning(
                "gpu.persistence-off",
                subject,
                vec!["nvidia-smi: persistence mode is off".to_owned()],
                "start nvidia-persistenced: without it the driver tears the GPU down when nothing uses it, and the first job waits for it",
            ));
        }
    }
    let missing = windows
        .iter()
        .filter(|w| !smi.gpus.iter().any(|gpu| gpu.bdf == Some(w.bdf)));
    let missing: Vec<String> = missing
        .map(|w| format!("{} is on the bus and not in nvidia-smi", w.bdf))
        .collect();
    if !missing.is_empty() && !smi.gpus.is_empty() {
        findings.push(Finding::failed(
            "gpu.missing",
            "nvidia-smi -q -x",
            missing,
            "look for `RmInitAdapter failed` and Xid in the kernel log; a GPU that is handed to a guest (vfio-pci) is missing rightly",
        ));
    }
    findings
}
