//! Which file system holds a path, and whether it may be written.

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::Fact;
use crate::sys::Root;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Mount {
    /// Where it is mounted.
    pub point: String,
    /// `ext4`, `xfs`, `btrfs`, ...
    pub kind: String,
    /// The device.
    pub source: String,
    /// Whether it is mounted read-only, by the mount or by the file system.
    pub read_only: bool,
}

impl Mount {
    /// Whether GRUB can write a file on it: a plain disk, no checksums (grub.texi, "Environment block").
    #[must_use]
    pub fn grub_can_write(&self) -> bool {
        let checksummed = matches!(
            self.kind.as_str(),
            "btrfs" | "zfs" | "f2fs" | "bcachefs" | "overlay" | "tmpfs"
        );
        let mapped = ["/dev/mapper/", "/dev/dm-", "/dev/md"]
            .iter()
            .any(|p| self.source.starts_with(p));
        !checksummed && !mapped
    }
}

pub(super) fn mount_of(root: &Root, path: &str) -> Fact<Mount> {
    let from = if root.is_of_running() {
        "/proc/self/mountinfo"
    } else {
        "/proc/1/mountinfo"
    };
    let text = Fact::read(from, root.text_if_there(from));
    // In a chroot into a directory that nothing is mounted on, the kernel lists what is mounted below it alone. What such an
    // image will lie on is not known, as where there is no /proc at all.
    if text.get().is_some_and(|text| holds_none(text, path)) {
        return Fact::absent(from);
    }
    text.and_then(|text| find(&text, path))
}

/// Whether every line is a mount, and none of them holds the path.
fn holds_none(mountinfo: &str, path: &str) -> bool {
    let whole = mountinfo.lines().all(|line| fields(line).is_some());
    whole && !mountinfo.is_empty() && find(mountinfo, path).is_none()
}

/// A line's mount point, options, kind, source and options of the file system.
fn fields(line: &str) -> Option<[&str; 5]> {
    let (left, right) = line.split_once(" - ")?;
    let left: Vec<&str> = left.split(' ').collect();
    let right: Vec<&str> = right.split(' ').collect();
    match (left.as_slice(), right.as_slice()) {
        ([_, _, _, _, point, options, ..], [kind, source, super_options, ..]) => {
            Some([point, options, kind, source, super_options])
        }
        _ => None,
    }
}

/// The last mount whose point is the longest prefix (Linux Documentation/filesystems/proc.rst 3.5).
fn find(mountinfo: &str, path: &str) -> Option<Mount> {
    let mut best: Option<Mount> = None;
    for line in mountinfo.lines() {
        let Some([point, options, kind, source, super_options]) = fields(line) else {
            continue;
        };
        let point = unescape(point);
        let inside = point == "/"
            || path == point
            || path
                .strip_prefix(&point)
                .is_some_and(|r| r.starts_with('/'));
        if inside && best.as_ref().is_none_or(|b| point.len() >= b.point.len()) {
            let ro = |options: &str| options.split(',').any(|o| o == "ro");
            let read_only = ro(options) || ro(super_options);
            best = Some(Mount {
                point,
                kind: kind.to_owned(),
                source: unescape(source),
                read_only,
            });
        }
    }
    best
}

/// Blanks in mount points are written as octal escapes.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n\
        30 22 8:2 / /boot ro,relatime shared:5 - xfs /dev/sda2 rw\n\
        31 22 8:3 / /boot2 rw - btrfs /dev/mapper/vg-x rw\n";

    #[test]
    fn the_longest_mount_point_counts() {
        let boot = find(INFO, "/boot/grub").unwrap();
        assert_eq!(
            (boot.kind.as_str(), boot.read_only, boot.grub_can_write()),
            ("xfs", true, true)
        );
        let root = find(INFO, "/etc").unwrap();
        // `errors=remount-ro` is not `ro`.
        assert_eq!((root.point.as_str(), root.read_only), ("/", false));
        assert!(!find(INFO, "/boot2").unwrap().grub_can_write());
    }

    #[test]
    fn a_chroot_that_nothing_is_mounted_on_has_no_mount_and_that_is_no_damage() {
        let chroot =
            "40 22 0:21 / /proc rw - proc proc rw\n41 22 0:22 / /sys ro - sysfs sysfs rw\n";
        assert!(holds_none(chroot, "/boot/grub"));
        assert!(!holds_none(chroot, "/proc/cmdline"));
        assert!(!holds_none(INFO, "/boot/grub"));
        // Damaged, it may have held the line that is looked for.
        assert!(!holds_none("", "/boot/grub"));
        assert!(!holds_none(
            "40 22 0:21 / /proc rw - proc proc rw\n22 1 8:1 / / rw\n",
            "/boot"
        ));
    }
}
