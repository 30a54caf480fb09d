//! NCCL's configuration files, and the NCCL variables of running processes.

use super::fact::Fact;
use crate::nccl_env::{ConfFile, NcclEnv, Process, conf, environ};
use crate::sys::{EntryKind, Root, SysError};

const ETC: &str = "/etc/nccl.conf";
const PASSWD: &str = "/etc/passwd";

/// Processes that are kept, and users whose files are looked for.
const PROCESSES: usize = 8192;
const USERS: usize = 64;

/// The files of the node and of root.
#[must_use]
pub fn nccl_files(root: &Root) -> NcclEnv {
    let mut env = NcclEnv {
        files: vec![file(root, ETC, None)],
        processes: Vec::new(),
        denied: 0,
    };
    users(root, &mut env, &[0]);
    env
}

/// As [`nccl_files`], and the environments of running processes, and the files that those read.
#[must_use]
pub fn nccl_env(root: &Root) -> NcclEnv {
    let mut env = nccl_files(root);
    processes(root, &mut env);
    let mut uids: Vec<u32> = env
        .processes
        .iter()
        .map(|p| p.uid)
        .filter(|uid| *uid != 0)
        .collect();
    uids.sort_unstable();
    uids.dedup();
    uids.truncate(USERS);
    users(root, &mut env, &uids);
    let named = env.processes.iter().flat_map(|p| &p.environment);
    let mut named: Vec<String> = named
        .filter(|(name, path)| name == "NCCL_CONF_FILE" && path.starts_with('/'))
        .map(|(_, path)| path.clone())
        .collect();
    named.sort();
    named.dedup();
    for path in named.iter().take(USERS) {
        env.files.push(file(root, path, None));
    }
    env
}

fn file(root: &Root, path: &str, uid: Option<u32>) -> ConfFile {
    let read = root.read_if_there(path);
    let lines = Fact::read(path, read.map(|bytes| bytes.map(|bytes| conf(&bytes))));
    let lines = match hidden(root, path) {
        Some(dir) if lines.get().is_none() => Fact::unknown(
            path,
            format!("{dir} is closed to everybody: a unit's ProtectHome= hides what is there"),
        ),
        _ => lines,
    };
    ConfFile { lines, uid }
}

/// The directory on the way to a file that a unit with `ProtectHome=yes` sees in place of a home: an empty one without any
/// permission (systemd.exec(5)). Root gets in, and finds nothing, which tells nothing.
fn hidden<'p>(root: &Root, path: &'p str) -> Option<&'p str> {
    let ends = path.match_indices('/').map(|(at, _)| at).skip(1);
    let mut dirs = ends.filter_map(|end| path.get(..end));
    dirs.find(|dir| {
        let stat = root.stat(dir).ok().flatten();
        stat.is_some_and(|stat| stat.kind == EntryKind::Dir && stat.mode & 0o777 == 0)
    })
}

/// NCCL looks in the home directory of the password file, not in `$HOME` (`userHomeDir` in `src/misc/param.cc`).
fn users(root: &Root, env: &mut NcclEnv, uids: &[u32]) {
    if uids.is_empty() {
        return;
    }
    let passwd = root
        .text_if_there(PASSWD)
        .ok()
        .flatten()
        .unwrap_or_default();
    for line in passwd.lines() {
        let fields: Vec<&str> = line.split(':').take(7).collect();
        let [_, _, uid, _, _, home, _] = fields.as_slice() else {
            continue;
        };
        if let Ok(uid) = uid.parse()
            && uids.contains(&uid)
            && home.starts_with('/')
            && !env.files.iter().any(|file| file.uid == Some(uid))
        {
            let path = format!("{}/.nccl.conf", home.trim_end_matches('/'));
            env.files.push(file(root, &path, Some(uid)));
        }
    }
}

fn processes(root: &Root, env: &mut NcclEnv) {
    let entries = root.list("/proc").unwrap_or_default();
    for pid in entries
        .iter()
        .filter_map(|entry| entry.name.parse::<u32>().ok())
    {
        let dir = format!("/proc/{pid}");
        let environment = match root.read_if_there(&format!("{dir}/environ")) {
            Ok(Some(bytes)) => environ(&bytes),
            // it has ended
            Ok(None) => continue,
            Err(e) => {
                env.denied += u64::from(denied(&e));
                continue;
            }
        };
        if environment.is_empty() || env.processes.len() >= PROCESSES {
            continue;
        }
        let name = root.text_if_there(&format!("{dir}/comm")).ok().flatten();
        let Ok(Some(stat)) = root.stat(&dir) else {
            continue;
        };
        env.processes.push(Process {
            pid,
            uid: stat.uid,
            name: name.unwrap_or_default(),
            environment,
        });
    }
}

fn denied(error: &SysError) -> bool {
    error.kind() == "permission-denied"
}

/// Where packages put the library; pip's have no version in the file's name.
const LIBRARIES: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/lib",
];

/// NCCL's minor version: of the library that processes with its variables have mapped; if there is none, of the one that
/// is installed. None where they do not agree.
#[must_use]
pub fn nccl_minor(root: &Root, env: &NcclEnv) -> Option<u32> {
    let mapped = env.processes.iter().take(USERS).filter_map(|process| {
        let maps = root.text_if_there(&format!("/proc/{}/maps", process.pid));
        let maps = maps.ok().flatten()?;
        maps.lines()
            .find_map(|line| minor(line.rsplit('/').next()?))
    });
    let mut minors: Vec<u32> = mapped.collect();
    if minors.is_empty() {
        let links = LIBRARIES.iter().filter_map(|dir| {
            let link = root.link(&format!("{dir}/libnccl.so.2")).ok().flatten()?;
            minor(link.rsplit('/').next()?)
        });
        minors = links.collect();
    }
    minors.sort_unstable();
    minors.dedup();
    match minors.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

/// `libnccl.so.2.26.2`.
fn minor(name: &str) -> Option<u32> {
    let version = name.strip_prefix("libnccl.so.2.")?;
    version.split(['.', ' ']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::minor;

    #[test]
    fn the_librarys_name_has_the_version() {
        assert_eq!(minor("libnccl.so.2.26.2"), Some(26));
        assert_eq!(minor("libnccl.so.2.31.4 (deleted)"), Some(31));
        assert_eq!(minor("libnccl.so.2"), None);
        assert_eq!(minor("libnccl-net.so.2.1"), None);
    }
}
