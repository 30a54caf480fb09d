//! A node's whole state as a value, and the one directory that takes on any of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self, Permissions};
use std::hash::{Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::bytes::Bytes;
use crate::model::{Disk, Id, ON_DISK, Thing};
use crate::spy::Known;

/// What is made anew at each boot.
pub const KERNELS: [&str; 3] = ["proc", "sys", "run"];

/// A path without a leading slash.
pub type Name = Rc<str>;

/// What there is under a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Node {
    File {
        bytes: Bytes,
        mode: u32,
        /// The first name of the same file, if this is not it.
        twin: Option<Name>,
    },
    Dir {
        mode: u32,
    },
    Link(PathBuf),
}

/// How something differs from the node as it was made: what is there now, or none.
pub type Changes = BTreeMap<Name, Option<Node>>;

/// What is set in [`Changes`], or taken out of them.
pub type Delta = BTreeMap<Name, Option<Option<Node>>>;

/// A disk, or what a kernel shows.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    pub changes: Changes,
    /// The same for all that nobody can tell apart: [`is_never_read`].
    pub digest: u64,
}

/// Files whose content nobody reads: records that have a successor, what holds room back, and what was not finished.
/// Only their names count. `next` is the name after this one.
pub fn is_never_read(name: &str, next: Option<&Name>) -> bool {
    let Some((dir, last)) = name.rsplit_once('/') else {
        return false;
    };
    let followed = || {
        next.is_some_and(|next| {
            next.ends_with(".rec") && next.rsplit_once('/').is_some_and(|(d, _)| d == dir)
        })
    };
    last.starts_with(".gdr-agent-tmp.")
        || dir.contains("gdr-agent/tx/")
            && (last == "reserve" || last.ends_with(".rec") && followed())
}

impl Part {
    pub fn new(changes: Changes) -> Rc<Self> {
        let mut hash = std::hash::DefaultHasher::new();
        let mut next = changes.keys().skip(1);
        for (name, node) in &changes {
            let next = next.next();
            name.hash(&mut hash);
            match node {
                Some(Node::File { mode, twin, .. }) if is_never_read(name, next) => {
                    (mode, twin).hash(&mut hash);
                }
                node => node.hash(&mut hash),
            }
        }
        Rc::new(Self {
            digest: hash.finish(),
            changes,
        })
    }

    /// What has to be changed of this to become the other.
    pub fn until(&self, other: &Self) -> Delta {
        let names = self.changes.keys().chain(other.changes.keys());
        let differ = names.filter(|name| self.changes.get(*name) != other.changes.get(*name));
        let set = differ.map(|name| (name.clone(), other.changes.get(name).cloned()));
        set.collect()
    }

    pub fn with(self: &Rc<Self>, delta: &Delta) -> Rc<Self> {
        if delta.is_empty() {
            return self.clone();
        }
        let mut changes = self.changes.clone();
        for (name, node) in delta {
            match node {
                Some(node) => drop(changes.insert(name.clone(), node.clone())),
                None => drop(changes.remove(name)),
            }
        }
        Self::new(changes)
    }

    /// Text of a file that differs from the node as it was made.
    pub fn text(&self, name: &str) -> Option<String> {
        match self.changes.get(name)? {
            Some(Node::File { bytes, .. }) => Some(String::from_utf8_lossy(bytes).into_owned()),
            _ => None,
        }
    }
}

/// A node's directory, what it was made as, and what it is now.
#[derive(Debug)]
pub struct Mirror {
    pub root: PathBuf,
    base: HashMap<Name, Node>,
    disk: Changes,
    kernel: Changes,
    pub known: Known,
    registers: Vec<Name>,
}

impl Mirror {
    /// Of the node in this directory, as it is.
    pub fn new(root: &Path) -> Self {
        let mut mirror = Self {
            root: root.to_owned(),
            base: HashMap::new(),
            disk: Changes::new(),
            kernel: Changes::new(),
            known: Known::default(),
            registers: Vec::new(),
        };
        let mut ids = HashMap::new();
        mirror.known.disk = Disk::scan(root, &mut mirror.known.next, &mut |inode, id| {
            ids.insert(inode, id);
        });
        mirror.known.ids = ids;
        let disk = nodes(&mirror.known.disk);
        mirror.base.extend(disk);
        for top in KERNELS {
            scan(root, top, &mut |name, node, _| {
                if name.ends_with("/config") {
                    mirror.registers.push(name.clone());
                }
                mirror.base.insert(name, node);
            });
        }
        mirror
    }

    /// Text of a file as it was made.
    pub fn base_text(&self, name: &str) -> &str {
        match self.base.get(name) {
            Some(Node::File { bytes, .. }) => std::str::from_utf8(bytes).unwrap(),
            _ => "",
        }
    }

    /// The disk of this model, as what differs.
    pub fn part_of(&self, disk: &Disk) -> Rc<Part> {
        let now = nodes(disk);
        let mut changes = Changes::new();
        for (name, node) in &now {
            if self.base.get(name) != Some(node) {
                changes.insert(name.clone(), Some(node.clone()));
            }
        }
        for name in self.base.keys().filter(|name| is_in(name, &ON_DISK)) {
            if !now.contains_key(name) {
                changes.insert(name.clone(), None);
            }
        }
        Part::new(changes)
    }

    /// The disk as it is by what was seen.
    pub fn disk_part(&mut self) -> Rc<Part> {
        let part = self.part_of(&self.known.disk);
        self.disk = part.changes.clone();
        part
    }

    /// What the kernel shows. `all` of it is looked at after a boot; else what the agent could have changed.
    pub fn kernel_part(&mut self, all: bool) -> Rc<Part> {
        let tops: Vec<&str> = match all {
            true => KERNELS.to_vec(),
            false => vec!["run"],
        };
        let mut seen = HashMap::new();
        for top in &tops {
            scan(&self.root, top, &mut |name, node, _| {
                seen.insert(name, node);
            });
        }
        if !all {
            for name in &self.registers {
                scan(&self.root, name, &mut |name, node, _| {
                    seen.insert(name, node);
                });
            }
        }
        let looked = |name: &str| is_in(name, &tops) || seen.contains_key(name);
        let mut changes: Changes = self
            .kernel
            .iter()
            .filter(|(name, _)| !looked(name))
            .map(|(name, node)| (name.clone(), node.clone()))
            .collect();
        let gone = self.base.keys().filter(|name| is_in(name, &tops));
        let gone = gone.filter(|name| !seen.contains_key(*name));
        changes.extend(gone.map(|name| (name.clone(), None)));
        for (name, node) in seen {
            if self.base.get(&name) != Some(&node) {
                changes.insert(name, Some(node));
            }
        }
        let part = Part::new(changes);
        self.kernel = part.changes.clone();
        part
    }

    /// The directory becomes this.
    pub fn become_this(&mut self, disk: &Part, kernel: &Part) {
        let now = std::mem::take(&mut self.disk);
        self.put(&now, &disk.changes, true);
        self.disk = disk.changes.clone();
        let now = std::mem::take(&mut self.kernel);
        self.put(&now, &kernel.changes, false);
        self.kernel = kernel.changes.clone();
    }

    fn put(&mut self, now: &Changes, wanted: &Changes, on_disk: bool) {
        let base = &self.base;
        let node = |of: &Changes, name: &Name| match of.get(name) {
            Some(node) => node.clone(),
            None => base.get(name).cloned(),
        };
        let mut differ = BTreeMap::new();
        for name in now.keys().chain(wanted.keys()) {
            let (is, want) = (node(now, name), node(wanted, name));
            if is != want {
                differ.insert(name.clone(), (is, want));
            }
        }
        for (name, (is, want)) in differ.iter().rev() {
            let path = self.root.join(&**name);
            match (is, want) {
                (None, _) | (Some(Node::Dir { .. }), Some(Node::Dir { .. })) => continue,
                (Some(Node::Dir { .. }), _) => fs::remove_dir(&path).unwrap(),
                _ => fs::remove_file(&path).unwrap(),
            }
            if on_disk {
                self.name(name, None);
            }
        }
        for (name, (is, want)) in &differ {
            let path = self.root.join(&**name);
            let mut set_mode = None;
            match want {
                None => continue,
                Some(Node::Dir { mode }) => {
                    if !matches!(is, Some(Node::Dir { .. })) {
                        fs::create_dir(&path).unwrap();
                    }
                    set_mode = Some(*mode);
                }
                Some(Node::Link(to)) => symlink(to, &path).unwrap(),
                Some(Node::File {
                    twin: Some(twin), ..
                }) => {
                    fs::hard_link(self.root.join(&**twin), &path).unwrap();
                }
                Some(Node::File { bytes, mode, .. }) => {
                    fs::write(&path, &bytes[..]).unwrap();
                    set_mode = Some(*mode);
                }
            }
            if let Some(mode) = set_mode {
                fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            }
            if on_disk {
                let inode = path.symlink_metadata().unwrap().ino();
                self.name(name, want.clone().map(|node| (node, inode)));
            }
        }
        if on_disk {
            self.forget_unreachable();
        }
    }

    /// Looks again at what programs other than the agent have done to the disk.
    pub fn look_again(&mut self, top: &str) {
        let mut seen = BTreeMap::new();
        scan(&self.root, top, &mut |name, node, inode| {
            seen.insert(name, (node, inode));
        });
        let before = nodes(&self.known.disk);
        let gone = before.keys().filter(|name| is_in(name, &[top]));
        for name in gone.filter(|name| !seen.contains_key(*name)).rev() {
            self.name(name, None);
        }
        for (name, found) in seen {
            if before.get(&name) != Some(&found.0) {
                self.name(&name, Some(found));
            }
        }
        self.forget_unreachable();
    }

    /// What the model is told of a name.
    fn name(&mut self, name: &str, node: Option<(Node, u64)>) {
        let (above, last) = name.rsplit_once('/').unwrap_or(("", name));
        let Some(dir) = self.known.disk.find(above) else {
            return;
        };
        let id = node.map(|(node, inode)| {
            let known = &mut self.known;
            let old = known
                .disk
                .names(dir)
                .and_then(|names| names.get(last))
                .copied();
            let same = known.ids.get(&inode).copied();
            let twin = matches!(node, Node::File { twin: Some(_), .. });
            let id = match same {
                Some(id) if twin || old == Some(id) => id,
                _ => {
                    known.next += 1;
                    known.next - 1
                }
            };
            known.ids.insert(inode, id);
            let names = match known.disk.things.remove(&id) {
                Some(Thing::Dir { names, .. }) => names,
                _ => BTreeMap::new(),
            };
            let thing = match node {
                Node::File { bytes, mode, .. } => Thing::File { bytes, mode },
                Node::Dir { mode } => Thing::Dir { names, mode },
                Node::Link(to) => Thing::Link(to),
            };
            known.disk.things.insert(id, thing);
            id
        });
        if let Some(Thing::Dir { names, .. }) = self.known.disk.things.get_mut(&dir) {
            match id {
                Some(id) => drop(names.insert(last.to_owned(), id)),
                None => drop(names.remove(last)),
            }
        }
    }

    fn forget_unreachable(&mut self) {
        let known = &mut self.known;
        if known.disk.things.len() < 600 {
            return;
        }
        let mut reached = HashSet::new();
        let mut todo: Vec<Id> = known.disk.tops.iter().map(|(_, id)| *id).collect();
        while let Some(id) = todo.pop() {
            reached.insert(id);
            todo.extend(
                known
                    .disk
                    .names(id)
                    .into_iter()
                    .flatten()
                    .map(|(_, id)| *id),
            );
        }
        known.disk.things.retain(|id, _| reached.contains(id));
        known.ids.retain(|_, id| reached.contains(id));
    }

    /// Everything in the directory is as it is believed to be.
    pub fn assert_true(&self) {
        let mut count = 0;
        for top in ON_DISK.iter().chain(&KERNELS) {
            scan(&self.root, top, &mut |name, node, _| {
                count += 1;
                let on_disk = is_in(&name, &ON_DISK);
                let changes = if on_disk { &self.disk } else { &self.kernel };
                let believed = match changes.get(&name) {
                    Some(node) => node.as_ref(),
                    None => self.base.get(&name),
                };
                assert_eq!(
                    believed,
                    Some(&node),
                    "{name} is not as it is believed to be"
                );
            });
        }
        let changes = || self.disk.iter().chain(&self.kernel);
        let more =
            changes().filter(|(name, node)| node.is_some() && !self.base.contains_key(*name));
        let less = changes().filter(|(name, node)| node.is_none() && self.base.contains_key(*name));
        assert_eq!(count, self.base.len() + more.count() - less.count());
    }
}

fn is_in(name: &str, tops: &[&str]) -> bool {
    tops.iter().any(|top| {
        name.strip_prefix(top)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })
}

/// Everything on a disk by its names.
fn nodes(disk: &Disk) -> BTreeMap<Name, Node> {
    let mut all = BTreeMap::new();
    let mut todo: Vec<(Name, Id)> = Vec::new();
    let tops = disk
        .tops
        .iter()
        .map(|(name, id)| (name.as_str().into(), *id));
    todo.extend(tops);
    let mut files: BTreeMap<Id, Name> = BTreeMap::new();
    let mut twins = Vec::new();
    while let Some((name, id)) = todo.pop() {
        let node = match &disk.things[&id] {
            Thing::Dir { names, mode } => {
                let below = names
                    .iter()
                    .map(|(n, id)| (format!("{name}/{n}").into(), *id));
                todo.extend(below);
                Node::Dir { mode: *mode }
            }
            Thing::Link(to) => Node::Link(to.clone()),
            Thing::File { bytes, mode } => {
                match files.get(&id) {
                    Some(first) if *first < name => twins.push((name.clone(), first.clone())),
                    Some(later) => {
                        twins.push((later.clone(), name.clone()));
                        files.insert(id, name.clone());
                    }
                    None => drop(files.insert(id, name.clone())),
                }
                Node::File {
                    bytes: bytes.clone(),
                    mode: *mode,
                    twin: None,
                }
            }
        };
        all.insert(name, node);
    }
    for (name, first) in twins {
        if let Some(Node::File { twin, .. }) = all.get_mut(&name) {
            *twin = Some(first);
        }
    }
    all
}

/// Looks at a name and all below it.
fn scan(root: &Path, name: &str, found: &mut dyn FnMut(Name, Node, u64)) {
    let mut twins = HashMap::new();
    scan_one(root, name, &mut twins, found);
}

fn scan_one(
    root: &Path,
    name: &str,
    twins: &mut HashMap<u64, Name>,
    found: &mut dyn FnMut(Name, Node, u64),
) {
    let path = root.join(name);
    let Ok(meta) = path.symlink_metadata() else {
        return;
    };
    let mode = meta.mode() & 0o7777;
    if meta.is_dir() {
        found(name.into(), Node::Dir { mode }, meta.ino());
        let entries = fs::read_dir(&path).unwrap();
        let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
        names.sort();
        for entry in names {
            let entry = entry.to_str().unwrap();
            scan_one(root, &format!("{name}/{entry}"), twins, found);
        }
    } else if meta.is_symlink() {
        let to = fs::read_link(&path).unwrap();
        found(name.into(), Node::Link(to), meta.ino());
    } else {
        let bytes = fs::read(&path).unwrap().into();
        let twin = match meta.nlink() {
            1 => None,
            _ => twins.get(&meta.ino()).cloned(),
        };
        twins.entry(meta.ino()).or_insert_with(|| name.into());
        found(name.into(), Node::File { bytes, mode, twin }, meta.ino());
    }
}
