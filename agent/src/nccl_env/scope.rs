//! In which order NCCL takes its sources: the process's environment, then the user's file, then the node's; the first to set a name wins,
//! within a file too (`setenv` without overwriting).

use std::collections::{BTreeMap, HashSet};

use super::{ConfFile, NcclEnv, Process, Setting};

/// Those that see the same settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scope {
    /// Processes; none stands for what will be started, by anybody or by one user, without variables of its own.
    pub pids: Vec<u32>,
    /// What is in force.
    pub settings: Vec<Setting>,
}

/// The node's own file.
pub(crate) const ETC: &str = "/etc/nccl.conf";

/// What is in force for a process, or for one that has no variables of its own.
#[must_use]
pub fn effective(env: &NcclEnv, process: Option<&Process>) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    let mut seen: HashSet<String> = HashSet::new();
    let mut add = |name: &str, value: &str, from: String| {
        if seen.insert(name.to_owned()) {
            settings.push(Setting {
                name: name.to_owned(),
                value: value.to_owned(),
                from,
            });
        }
    };
    if let Some(process) = process {
        for (name, value) in &process.environment {
            add(
                name,
                value,
                format!("pid {} ({})", process.pid, process.name),
            );
        }
    }
    for file in files(env, process) {
        for line in file.lines.get().into_iter().flatten() {
            add(
                &line.key,
                &line.value,
                format!("{}:{}", file.lines.from, line.number),
            );
        }
    }
    settings
}

/// The files that a process reads, in order.
fn files<'e>(env: &'e NcclEnv, process: Option<&'e Process>) -> impl Iterator<Item = &'e ConfFile> {
    let named = process.and_then(|p| {
        let conf = p
            .environment
            .iter()
            .find(|(name, _)| name == "NCCL_CONF_FILE");
        conf.map(|(_, path)| path.as_str())
            .filter(|path| !path.is_empty())
    });
    let user = env.files.iter().filter(move |file| match (named, process) {
        (Some(path), _) => file.lines.from == path,
        (None, Some(process)) => file.uid == Some(process.uid),
        (None, None) => false,
    });
    let etc = env
        .files
        .iter()
        .filter(|file| file.lines.from == ETC && file.uid.is_none());
    user.take(1).chain(etc.take(1))
}

/// What is in force, for processes that see the same together: a job has hundreds.
#[must_use]
pub fn scopes(env: &NcclEnv) -> Vec<Scope> {
    let mut scopes = vec![Scope {
        pids: Vec::new(),
        settings: effective(env, None),
    }];
    // what each user's next job would see
    let users = env.files.iter().filter_map(|file| file.uid);
    scopes.extend(users.map(|uid| {
        let process = Process {
            pid: 0,
            uid,
            name: String::new(),
            environment: Vec::new(),
        };
        Scope {
            pids: Vec::new(),
            settings: effective(env, Some(&process)),
        }
    }));
    let mut alike: BTreeMap<Vec<(String, String)>, Scope> = BTreeMap::new();
    for process in &env.processes {
        let settings = effective(env, Some(process));
        let key: Vec<(String, String)> = settings
            .iter()
            .map(|s| (s.name.clone(), s.value.clone()))
            .collect();
        let scope = alike.entry(key).or_insert_with(|| Scope {
            pids: Vec::new(),
            settings,
        });
        scope.pids.push(process.pid);
    }
    let mut alike: Vec<Scope> = alike.into_values().collect();
    alike.sort_by_key(|scope| scope.pids.first().copied());
    scopes.extend(alike);
    scopes
}
