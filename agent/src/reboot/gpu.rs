//! Whether a process computes on a GPU.
//!
//! CUDA opens `/dev/nvidia-uvm` for as long as a process has a context; the daemons that only look after a
//! GPU (nvidia-persistenced, the fabric manager, DCGM) open `/dev/nvidia0` and `/dev/nvidiactl` and not that.
//! Each open file counts in the module's `refcnt`, whatever container it is opened from, and reading that
//! takes no right to look into other processes. ROCm's compute processes are listed by the kernel under
//! `/sys/class/kfd/kfd/proc`.

use super::gates::Gate;
use super::refusal::one_line;
use crate::sys::{Root, SysError};

pub(super) const NAME: &str = "gpu";

const MODULES: &str = "/sys/module";
const UVM: &str = "/sys/module/nvidia_uvm";
const KFD: &str = "/sys/class/kfd/kfd/proc";

/// The GPUs of the node.
#[derive(Debug)]
pub(super) struct Gpu {
    pub(super) root: Root,
}

impl Gate for Gpu {
    fn name(&self) -> &'static str {
        NAME
    }

    fn asks(&self) -> String {
        format!("whether no process computes on a GPU ({UVM}/refcnt, /proc/*/fd, {KFD})")
    }

    /// A job that begins under the warning of a reboot is not to die of it.
    fn lasts(&self) -> bool {
        true
    }

    fn open(&self, _back: bool) -> Result<(), String> {
        idle(&self.root)
    }
}

/// Whether no process computes on a GPU.
///
/// # Errors
/// Which one does, or why that is not known, in words.
pub fn idle(root: &Root) -> Result<(), String> {
    let unknown = |e: SysError| format!("whether a process computes on a GPU is not known: {e}");
    let count = uvm_users(root)?;
    let seen = openers(root).map_err(unknown)?;
    if !seen.who.is_empty() {
        return Err(format!("a GPU is in use by {}", seen.who.join(", ")));
    }
    match count {
        Some(0) => {}
        Some(n) => {
            return Err(format!(
                "a GPU is in use: {n} files of /dev/nvidia-uvm are open, by processes that cannot be looked into"
            ));
        }
        // Nothing counts them, so every process must have been seen.
        None => {
            if let Some(process) = seen.hidden {
                return Err(format!(
                    "whether a process computes on a GPU is not known: the open files of {process} cannot be read"
                ));
            }
        }
    }
    let rocm = root.list(KFD).map_err(unknown)?;
    if rocm.is_empty() {
        return Ok(());
    }
    let pids: Vec<String> = rocm
        .iter()
        .take(5)
        .map(|e| format!("process {}", e.name))
        .collect();
    Err(format!("a GPU is in use by {}", pids.join(", ")))
}

/// Open files of nvidia-uvm: 0 where the module is not loaded; none where nothing counts them (`CONFIG_MODULE_UNLOAD=n`).
fn uvm_users(root: &Root) -> Result<Option<u64>, String> {
    let text = root
        .text_if_there(&format!("{UVM}/refcnt"))
        .map_err(|e| format!("whether a process computes on a GPU is not known: {e}"))?;
    let Some(text) = text else {
        let there = |path: &str| {
            let found = root
                .stat(path)
                .map_err(|e| format!("whether a process computes on a GPU is not known: {e}"))?;
            Ok::<bool, String>(found.is_some())
        };
        // Without sysfs, a module that is not there is no module that is not loaded.
        return Ok((there(MODULES)? && !there(UVM)?).then_some(0));
    };
    let count: u64 = text.trim().parse().map_err(|_| {
        format!(
            "whether a process computes on a GPU is not known: {UVM}/refcnt holds `{}`",
            one_line(text.trim())
        )
    })?;
    // A module that uses it counts as well.
    let modules = root
        .list(&format!("{UVM}/holders"))
        .map_err(|e| format!("whether a process computes on a GPU is not known: {e}"))?;
    Ok(Some(count.saturating_sub(modules.len() as u64)))
}

/// Who has a compute device open, as far as processes can be looked into.
#[derive(Debug, Default)]
struct Seen {
    who: Vec<String>,
    /// A process that could not be looked into.
    hidden: Option<String>,
}

fn openers(root: &Root) -> Result<Seen, SysError> {
    let mut seen = Seen::default();
    let processes = root.list("/proc")?;
    // Where /proc shows a process only to those who may look into it, the first is not there either.
    if !processes.iter().any(|process| process.name == "1") {
        seen.hidden = Some("processes that /proc does not show".to_owned());
    }
    for process in processes {
        if process.name.parse::<u32>().is_err() {
            continue;
        }
        let dir = format!("/proc/{}", process.name);
        let files = match root.list(&format!("{dir}/fd")) {
            Ok(files) => files,
            // Processes come and go.
            Err(e) if e.is_not_found() => continue,
            Err(_) => {
                seen.hidden.get_or_insert(name_of(root, &process.name));
                continue;
            }
        };
        let computes = files.iter().any(|file| {
            let link = root.link(&format!("{dir}/fd/{}", file.name));
            link.ok().flatten().is_some_and(|to| is_compute(&to))
        });
        if computes && seen.who.len() < 5 {
            seen.who.push(name_of(root, &process.name));
        }
    }
    Ok(seen)
}

fn is_compute(path: &str) -> bool {
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or_default();
    name == "nvidia-uvm" || (name == "kfd" && path.starts_with("/dev/"))
}

fn name_of(root: &Root, pid: &str) -> String {
    match root.text_if_there(&format!("/proc/{pid}/comm")) {
        Ok(Some(name)) => format!("process {pid} ({})", one_line(name.trim())),
        _ => format!("process {pid}"),
    }
}
