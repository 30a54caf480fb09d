//! File systems in images, mounted through loop devices.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::blocks::Blocks;

/// Names of directories with mounts in them begin so; the process's number follows.
const PREFIX: &str = "gdr-crash-fs.";

/// Whose journal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// One for everything, as Debian's installer makes it.
    Ext4,
    /// /boot for itself, as Red Hat's installer makes it.
    Xfs,
    /// One for everything, as SUSE's installer makes it. GRUB cannot write there.
    Btrfs,
}

impl FileSystem {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// Where its volumes are mounted, below the root of the node.
    pub fn places(self) -> &'static [&'static str] {
        match self {
            Self::Xfs => &["", "boot"],
            Self::Ext4 | Self::Btrfs => &[""],
        }
    }

    /// The smallest that its mkfs makes, or what the node needs.
    fn size(self) -> u64 {
        match self {
            Self::Ext4 => 64 << 20,
            Self::Xfs => 300 << 20,
            Self::Btrfs => 128 << 20,
        }
    }

    /// As a distribution makes them whose GRUB is 2.06: of what mkfs has learned since, that GRUB refuses to
    /// read the first two on ext4, and reads xfs as RHEL 8 makes it.
    fn make(self, image: &Path) -> Result<(), String> {
        let image = text(image);
        match self {
            Self::Ext4 => run(
                "mkfs.ext4",
                &["-q", "-F", "-O", "^orphan_file,^metadata_csum_seed", image],
            ),
            Self::Xfs => run(
                "mkfs.xfs",
                &[
                    "-q",
                    "-m",
                    "bigtime=0,inobtcount=0",
                    "-i",
                    "nrext64=0",
                    image,
                ],
            ),
            Self::Btrfs => run("mkfs.btrfs", &["-q", image]),
        }
        .map(drop)
    }
}

/// Why none of this can be tried here; nothing is left to say where it can.
pub fn lacking(system: FileSystem) -> Option<String> {
    if run("id", &["-u"]).ok().as_deref() != Some("0") {
        return Some("it takes root".to_owned());
    }
    let mkfs = format!("mkfs.{}", system.name());
    for program in [
        &mkfs,
        "losetup",
        "fsfreeze",
        "fallocate",
        "grub-fstest",
        "grub-editenv",
    ] {
        let dirs = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        if !dirs.iter().any(|dir| Path::new(dir).join(program).exists()) {
            return Some(format!(
                "{program} is missing, whose package scripts/test installs"
            ));
        }
    }
    let tried = Disks::make(system).and_then(|disks| disks.mount().map(drop));
    tried
        .err()
        .map(|why| format!("no image can be mounted here: {why}"))
}

/// The images of a node's disks.
#[derive(Debug)]
pub struct Disks {
    pub system: FileSystem,
    dir: tempfile::TempDir,
}

impl Disks {
    /// New and empty ones.
    pub fn make(system: FileSystem) -> Result<Self, String> {
        let disks = Self::blank(system)?;
        for image in disks.images() {
            let file = std::fs::File::create(&image).map_err(|e| e.to_string())?;
            file.set_len(system.size()).map_err(|e| e.to_string())?;
            system.make(&image)?;
            // An empty log is 64 MiB of zeros on xfs: holes are not read.
            run("fallocate", &["--dig-holes", text(&image)])?;
        }
        Ok(disks)
    }

    /// A place for copies of others.
    pub fn blank(system: FileSystem) -> Result<Self, String> {
        let dir = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}.", std::process::id()))
            .tempdir()
            .map_err(|e| e.to_string())?;
        Ok(Self { system, dir })
    }

    pub fn images(&self) -> Vec<PathBuf> {
        let numbers = 0..self.system.places().len();
        numbers
            .map(|n| self.dir.path().join(format!("disk{n}")))
            .collect()
    }

    /// Where the root of the node is when they are mounted.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    /// What is on them now; they must not be mounted.
    pub fn read(&self) -> Result<Vec<Blocks>, String> {
        let all = self.images();
        all.iter()
            .map(|image| Blocks::read(image).map_err(|e| e.to_string()))
            .collect()
    }

    pub fn write(&self, all: &[Blocks]) -> Result<(), String> {
        for (image, blocks) in self.images().iter().zip(all) {
            let size = self.system.size();
            blocks.write(image, size).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Mounts all of them, until what is returned is dropped.
    pub fn mount(&self) -> Result<Mounted, String> {
        let mut mounted = Mounted {
            points: Vec::new(),
            devices: Vec::new(),
        };
        for (place, image) in self.system.places().iter().zip(self.images()) {
            let point = self.root().join(place);
            std::fs::create_dir_all(&point).map_err(|e| e.to_string())?;
            let device = run("losetup", &["--find", "--show", text(&image)])?;
            let done = run("mount", &["-t", self.system.name(), &device, text(&point)]);
            // The mount holds it from now on, and it goes with it.
            let detached = run("losetup", &["--detach", &device]);
            done?;
            mounted.points.push(point);
            mounted.devices.push(device);
            detached?;
        }
        Ok(mounted)
    }
}

/// Disks in use.
#[derive(Debug)]
pub struct Mounted {
    points: Vec<PathBuf>,
    /// `/dev/loopN` of each.
    pub devices: Vec<String>,
}

impl Mounted {
    /// Unmounts them as a clean shutdown does.
    pub fn end(mut self) -> Result<(), String> {
        while let Some(point) = self.points.pop() {
            run("umount", &[text(&point)])?;
        }
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        for point in self.points.drain(..).rev() {
            let gone = run("umount", &[text(&point)]);
            if gone.is_err() {
                let _ = run("umount", &["--lazy", text(&point)]);
            }
        }
    }
}

/// Brings a file system to where GRUB can read it, as the agent does on a live system.
pub fn freeze_and_thaw(dir: &Path) -> Result<(), String> {
    run("fsfreeze", &["--freeze", text(dir)])?;
    run("fsfreeze", &["--unfreeze", text(dir)]).map(drop)
}

/// Takes away what a test has left that was killed.
pub fn sweep() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    for line in mounts.lines().rev() {
        let Some(point) = line.split(' ').nth(1).map(Path::new) else {
            continue;
        };
        let ours = point.ancestors().find(|dir| owner(dir).is_some());
        let Some(dir) = ours else { continue };
        if owner(dir).is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
            continue;
        }
        let _ = run("fsfreeze", &["--unfreeze", text(point)]);
        if run("umount", &["--lazy", text(point)]).is_ok() && point.ends_with("root") {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// The process whose directory this is.
fn owner(dir: &Path) -> Option<u32> {
    let name = dir.file_name()?.to_str()?.strip_prefix(PREFIX)?;
    name.split('.').next()?.parse().ok()
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs a program and returns what it said, or what it complained of.
pub fn run(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(format!("{program} {}: {said}", args.join(" ")))
    }
}
