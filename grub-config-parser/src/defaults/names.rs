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

/// Variables that bash has a hand in, besides those whose names begin with `BASH`. Sorted.
#[rustfmt::skip]
const OF_BASH: &[&str] = &[
    "CHILD_MAX", "COMPREPLY", "COPROC", "DIRSTACK", "ENV", "EPOCHREALTIME", "EPOCHSECONDS", "EUID",
    "EXECIGNORE", "FIGNORE", "FUNCNAME", "FUNCNEST", "GLOBIGNORE", "GLOBSORT", "GROUPS", "HISTCMD",
    "HOME", "HOSTNAME", "HOSTTYPE", "IFS", "IGNOREEOF", "LANG", "LANGUAGE", "LINENO", "MACHTYPE",
    "MAPFILE", "OLDPWD", "OPTARG", "OPTERR", "OPTIND", "OSTYPE", "PATH", "PIPESTATUS",
    "POSIXLY_CORRECT", "PPID", "PS4", "PWD", "RANDOM", "READLINE_ARGUMENT", "READLINE_LINE",
    "READLINE_MARK", "READLINE_POINT", "REPLY", "SECONDS", "SHELL", "SHELLOPTS", "SHLVL", "SRANDOM",
    "TEXTDOMAIN", "TEXTDOMAINDIR", "TMOUT", "UID", "_",
];

/// True if assigning to the name does more in bash than that, or less.
pub(super) fn is_of_bash(name: &[u8]) -> bool {
    [b"BASH".as_slice(), b"COMP_", b"LC_", b"HIST"]
        .iter()
        .any(|start| name.starts_with(start))
        || OF_BASH
            .binary_search_by(|known| known.as_bytes().cmp(name))
            .is_ok()
}

/// Commands that dash has not, or that do in bash what is not followed. Sorted.
#[rustfmt::skip]
const COMMANDS_OF_BASH: &[&str] = &[
    ".", "[[", "alias", "bind", "builtin", "caller", "cd", "compgen", "complete", "compopt",
    "coproc", "declare", "dirs", "disown", "enable", "function", "getopts", "hash", "help",
    "history", "let", "local", "logout", "mapfile", "popd", "pushd", "read", "readarray", "select",
    "shift", "shopt", "source", "suspend", "time", "trap", "typeset", "unalias", "wait",
];

/// True for a command that bash has and nobody here follows.
pub(super) fn is_command_of_bash(name: &[u8]) -> bool {
    COMMANDS_OF_BASH
        .binary_search_by(|known| known.as_bytes().cmp(name))
        .is_ok()
}

/// True if a command of this name may be there. A path may always be.
pub(super) fn may_exist(name: &[u8]) -> bool {
    name.contains(&b'/')
        || PROGRAMS
            .binary_search_by(|known| known.as_bytes().cmp(name))
            .is_ok()
}
