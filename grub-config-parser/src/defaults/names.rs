//! The names of programs that a system may have.

/// Sorted. dash's own commands that are not followed, and programs that turn up in configuration.
#[rustfmt::skip]
const PROGRAMS: &[&str] = &[
    "apt-cache", "apt-get", "arch", "awk", "base64", "basename", "bash", "bc", "bg", "blkid",
    "bootctl", "busybox", "bzcat", "cal", "cat", "cd", "chattr", "chdir", "chgrp", "chmod",
    "chown", "chroot", "cksum", "cmp", "column", "comm", "cp", "cpio", "cryptsetup", "csplit",
    "curl", "cut", "dash", "date", "dd", "debconf-communicate", "debconf-show", "depmod", "df",
    "diff", "dig", "dirname", "dmesg", "dmidecode", "dmsetup", "dnf", "dpkg", "dpkg-divert",
    "dpkg-query", "dracut", "du", "ed", "efibootmgr", "egrep", "env", "ethtool", "expand", "expr",
    "factor", "fc", "fdisk", "fg", "fgrep", "file", "find", "findmnt", "fmt", "fold", "free",
    "fuser", "gawk", "gcc", "getconf", "getent", "getopt", "git", "gpg", "grep", "groups",
    "grub-editenv", "grub-install", "grub-mkconfig", "grub-mkrelpath", "grub-probe", "grub-reboot",
    "grub-script-check", "grub-set-default", "grub2-editenv", "grub2-install", "grub2-mkconfig",
    "grub2-mkrelpath", "grub2-probe", "grub2-reboot", "grub2-set-default", "grubby", "gunzip",
    "gzip", "hash", "head", "hexdump", "hostid", "hostname", "hostnamectl", "id", "ifconfig",
    "insmod", "install", "ionice", "ip", "jobs", "journalctl", "jq", "kexec", "kill", "killall",
    "kmod", "last", "less", "link", "ln", "locale", "localectl", "logger", "login", "logname",
    "ls", "lsattr", "lsb_release", "lsblk", "lscpu", "lsmem", "lsmod", "lsof", "lspci", "lsusb",
    "lvdisplay", "lvs", "make", "mawk", "md5sum", "mdadm", "mkdir", "mkfifo", "mknod", "mkswap",
    "mktemp", "modinfo", "modprobe", "mokutil", "more", "mount", "mountpoint", "mv", "nawk", "nc",
    "nice", "nl", "nohup", "nproc", "nslookup", "numactl", "numfmt", "nvidia-smi", "nvme", "od",
    "openssl", "parted", "paste", "patch", "pathchk", "perl", "pgrep", "pidof", "ping", "pip",
    "pkill", "plymouth-set-default-theme", "pr", "printenv", "printf", "prlimit", "ps", "ptx",
    "pvs", "pwd", "pwdx", "pwgen", "python", "python2", "python3", "readlink", "realpath",
    "reboot", "renice", "reset", "rev", "rm", "rmdir", "rmmod", "rpm", "rsync", "ruby",
    "run-parts", "runlevel", "sed", "seq", "setpci", "setsid", "sh", "sha1sum", "sha256sum",
    "sha512sum", "shred", "shuf", "sleep", "sort", "split", "ssh", "stat", "stdbuf", "strings",
    "stty", "su", "sudo", "sum", "swaplabel", "swapoff", "swapon", "sync", "sysctl", "systemctl",
    "systemd-cat", "systemd-detect-virt", "tac", "tail", "tar", "taskset", "tee", "time",
    "timeout", "top", "touch", "tput", "tr", "truncate", "tsort", "tty", "type", "ucf", "udevadm",
    "ulimit", "umask", "umount", "unalias", "uname", "uncompress", "unexpand", "uniq", "unlink",
    "unxz", "unzip", "update-grub", "update-grub2", "update-initramfs", "uptime", "users", "vgs",
    "virt-what", "vmstat", "w", "wait", "watch", "wc", "wget", "whatis", "which", "who", "whoami",
    "xargs", "xxd", "xz", "xzcat", "yes", "yum", "zcat", "zfs", "zgrep", "zip", "zpool", "zstd",
    "zypper",
];

/// True if a command of this name may be there. A path may always be.
pub(super) fn may_exist(name: &[u8]) -> bool {
    name.contains(&b'/')
        || PROGRAMS
            .binary_search_by(|known| known.as_bytes().cmp(name))
            .is_ok()
}
