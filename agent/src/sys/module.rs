//! Loading and unloading kernel modules: through modprobe, which knows the node's configuration.

use std::ffi::CString;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::kernel_log::KernelLog;
use super::{Root, SysError, process};

const LIMIT: Duration = Duration::from_secs(60);

/// A module that was not loaded, with what was said about it.
#[derive(Debug, Clone)]
pub struct NotLoaded {
    /// modprobe's standard error.
    pub stderr: String,
    /// The kernel log's lines since the attempt; none if it cannot be read.
    pub log: Option<Vec<String>>,
}

/// Loads a module into the running kernel. The inner result tells whether modprobe took it.
///
/// # Errors
/// The root is not the running system, modprobe cannot be run, or it takes longer than a minute.
pub fn load(root: &Root, name: &str) -> Result<Result<(), NotLoaded>, SysError> {
    running(root, "load a module into")?;
    let log = KernelLog::from_now(root).ok();
    let output = process::run(root, &["modprobe", "--", name], LIMIT)?;
    if output.status == Some(0) {
        return Ok(Ok(()));
    }
    Ok(Err(NotLoaded {
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        log: log.and_then(|log| log.lines(root).ok()),
    }))
}

/// Unloads a module that nothing uses; one that is not loaded counts as unloaded. What it depends on stays:
/// `modprobe -r` would take the driver and the RDMA core along.
///
/// # Errors
/// The root is not the running system, or the kernel refused: something uses the module.
pub fn unload(root: &Root, name: &str) -> Result<(), SysError> {
    running(root, "unload a module from")?;
    let name = name.replace('-', "_");
    let fail = |why: String| SysError::Process {
        program: format!("delete_module(2) {name}"),
        why,
    };
    let c_name = CString::new(name.as_str()).map_err(|e| fail(e.to_string()))?;
    // O_NONBLOCK: never wait for whoever uses it to let go.
    match rustix::system::delete_module(&c_name, OFlags::NONBLOCK.bits().cast_signed()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::AGAIN) => Err(fail("it is in use".to_owned())),
        Err(e) => Err(fail(e.to_string())),
    }
}

/// A module goes into the kernel that runs, whatever the root: that of an image is not running.
fn running(root: &Root, action: &'static str) -> Result<(), SysError> {
    if root.is_live() {
        return Ok(());
    }
    Err(SysError::Refused {
        action,
        path: root.path().into(),
        why: "it is a directory and not the running system".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_loaded_for_an_image() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        for refused in [load(&root, "x").map(drop), unload(&root, "x")] {
            assert!(
                matches!(refused, Err(SysError::Refused { .. })),
                "{refused:?}"
            );
        }
    }
}
