//! Power: building the node and rebooting it.

use super::grub::{self, Booted, Firmware, GrubError};
use super::kernel::{self, MARK, Started};
use super::spec::NodeSpec;
use super::tree::{Tree, TreeError};
use super::{distro, family, procfs, sysfs, tools};

/// Why a sample node could not be built or did not come up.
#[derive(Debug, thiserror::Error)]
pub enum PowerError {
    /// A file of the made-up machine.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// It hangs in the boot loader.
    #[error(transparent)]
    Grub(#[from] GrubError),
    /// Nothing is ever removed or overwritten in a directory that was not made here.
    #[error("{0} is not empty: a sample node is made in a new or an empty directory")]
    NotEmpty(std::path::PathBuf),
    /// Not made by [`create`].
    #[error("{0} is not a sample node: it has no file {MARK}")]
    NotANode(std::path::PathBuf),
    /// A panic that nothing ends.
    #[error("the kernel panicked and its command line has no panic=: it stays like that: {0}")]
    Stuck(String),
}

/// How a reboot goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reboot {
    /// What GRUB can do.
    pub firmware: Firmware,
    /// The kernel of a trial boot panics. A boot without a trial is not harmed.
    pub dies: bool,
}

/// One start of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// What GRUB started.
    pub grub: Booted,
    /// What the kernel made of it; `None` if it panicked.
    pub kernel: Option<Started>,
}

/// Makes the server that `spec` describes in `root` and boots it once.
pub fn create(root: &std::path::Path, spec: &NodeSpec) -> Result<Boot, PowerError> {
    let tree = Tree::new(root);
    if !tree.names("")?.is_empty() {
        return Err(PowerError::NotEmpty(root.to_path_buf()));
    }
    tree.dir("")?;
    tree.file(MARK, format!("firmware_acs=0x{:04x}\n", spec.firmware_acs))?;
    tools::merge_usr(&tree, spec.family.shell())?;
    if let Some(tool) = &spec.tools {
        tools::install(&tree, tool, spec.family.shell())?;
    }
    sysfs::write(&tree, spec)?;
    procfs::write(&tree, spec)?;
    distro::write(&tree, spec)?;
    family::convert(&tree, spec)?;
    let grub = grub::boot(&tree, Firmware::default())?;
    let kernel = Some(kernel::start(&tree, &grub.kernel, &grub.cmdline)?);
    Ok(Boot { grub, kernel })
}

/// Reboots the machine in `root`. The last boot returned is the one that runs.
pub fn reboot(root: &std::path::Path, how: Reboot) -> Result<Vec<Boot>, PowerError> {
    let tree = Tree::new(root);
    if !tree.exists(MARK) {
        return Err(PowerError::NotANode(root.to_path_buf()));
    }
    let mut boots = Vec::new();
    let mut grub = grub::boot(&tree, how.firmware)?;
    if how.dies && is_trial(&grub.cmdline) {
        let seconds = super::cmdline::parameters(&grub.cmdline)
            .into_iter()
            .rfind(|(name, _)| name == "panic")
            .and_then(|(_, value)| value?.parse::<i64>().ok());
        if seconds.is_none_or(|seconds| seconds == 0) {
            return Err(PowerError::Stuck(grub.cmdline));
        }
        boots.push(Boot { grub, kernel: None });
        grub = grub::boot(&tree, how.firmware)?;
    }
    let kernel = Some(kernel::start(&tree, &grub.kernel, &grub.cmdline)?);
    boots.push(Boot { grub, kernel });
    Ok(boots)
}

/// Starts the kernel that GRUB has loaded, in the machine in `root`: GRUB may have read other disks.
pub fn start(root: &std::path::Path, grub: Booted) -> Result<Boot, PowerError> {
    let kernel = Some(kernel::start(
        &Tree::new(root),
        &grub.kernel,
        &grub.cmdline,
    )?);
    Ok(Boot { grub, kernel })
}

fn is_trial(cmdline: &str) -> bool {
    super::cmdline::parameters(cmdline)
        .iter()
        .any(|(name, _)| name == "gdr.txn")
}
