//! A disk: what is on it, what was only asked for, and what a power cut may leave of that.
//!
//! After POSIX and no particular file system: a file's bytes are safe once the file was synced, a name once its
//! directory was. Whatever was not synced is there or not, each change for itself and each sector of 512 bytes for
//! itself. A rename is one change.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::bytes::Bytes;
use crate::random::Random;

/// What a disk writes whole or not at all.
const SECTOR: usize = 512;

/// Where a node's disk is mounted; the rest of its tree is the kernel's.
pub const ON_DISK: [&str; 3] = ["boot", "etc", "var"];

/// A file, a directory or a link: never used again, as numbers of inodes are.
pub type Id = usize;

/// What one is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Thing {
    File {
        bytes: Bytes,
        mode: u32,
    },
    Dir {
        names: BTreeMap<String, Id>,
        mode: u32,
    },
    Link(PathBuf),
}

/// One change, after the fact.
#[derive(Debug, Clone)]
pub enum Event {
    /// Something new, that has no name yet.
    New(Id, Thing),
    /// Names in a directory; together or not at all.
    Names(Id, Vec<(String, Option<Id>)>),
    Write(Id, usize, Vec<u8>),
    Truncate(Id),
    Mode(Id, u32),
    SyncFile(Id),
    SyncDir(Id),
    SyncAll,
}

/// Everything on a disk.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    pub things: BTreeMap<Id, Thing>,
    pub tops: Vec<(String, Id)>,
}

/// What a power cut leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// Everything that was asked for.
    All,
    /// Nothing that was not synced.
    Synced,
    /// A part, by a seed.
    Part(u64),
}

impl Disk {
    /// What is in a directory now. `seen` is told the inode number of each thing.
    pub fn scan(root: &Path, next: &mut Id, seen: &mut dyn FnMut(u64, Id)) -> Self {
        let mut disk = Self::default();
        let mut known = BTreeMap::new();
        for top in ON_DISK {
            if root.join(top).exists() {
                let id = disk.scan_one(&root.join(top), next, &mut known);
                disk.tops.push((top.to_owned(), id));
            }
        }
        known.iter().for_each(|((_, inode), id)| seen(*inode, *id));
        disk
    }

    fn scan_one(&mut self, path: &Path, next: &mut Id, known: &mut BTreeMap<(u64, u64), Id>) -> Id {
        let meta = path.symlink_metadata().unwrap();
        let own = (meta.dev(), meta.ino());
        if let Some(id) = known.get(&own) {
            return *id;
        }
        let id = *next;
        *next += 1;
        known.insert(own, id);
        let mode = meta.mode() & 0o7777;
        let thing = if meta.is_dir() {
            let mut names = BTreeMap::new();
            for entry in fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                let name = entry.file_name().into_string().unwrap();
                names.insert(name, self.scan_one(&entry.path(), next, known));
            }
            Thing::Dir { names, mode }
        } else if meta.is_symlink() {
            Thing::Link(fs::read_link(path).unwrap())
        } else {
            let bytes = fs::read(path).unwrap().into();
            Thing::File { bytes, mode }
        };
        self.things.insert(id, thing);
        id
    }

    /// Puts the disk into the place of the one that is there.
    pub fn write(&self, root: &Path) {
        let mut made: BTreeMap<Id, PathBuf> = BTreeMap::new();
        for (name, id) in &self.tops {
            let path = root.join(name);
            if path.exists() {
                fs::remove_dir_all(&path).unwrap();
            }
            self.write_one(*id, &path, &mut made);
        }
    }

    fn write_one(&self, id: Id, path: &Path, made: &mut BTreeMap<Id, PathBuf>) {
        if let Some(first) = made.get(&id) {
            return fs::hard_link(first, path).unwrap();
        }
        match &self.things[&id] {
            Thing::Dir { names, mode } => {
                fs::create_dir(path).unwrap();
                for (name, id) in names {
                    self.write_one(*id, &path.join(name), made);
                }
                fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
            }
            Thing::Link(to) => symlink(to, path).unwrap(),
            Thing::File { bytes, mode } => {
                fs::write(path, &bytes[..]).unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
                made.insert(id, path.to_owned());
            }
        }
    }

    pub fn names(&self, dir: Id) -> Option<&BTreeMap<String, Id>> {
        match self.things.get(&dir)? {
            Thing::Dir { names, .. } => Some(names),
            _ => None,
        }
    }

    /// What a path without a leading slash leads to.
    pub fn find(&self, path: &str) -> Option<Id> {
        let mut parts = path.split('/');
        let top = parts.next()?;
        let first = self.tops.iter().find(|(name, _)| name == top)?.1;
        parts.try_fold(first, |dir, name| self.names(dir)?.get(name).copied())
    }

    pub fn apply(&mut self, event: &Event) {
        match event {
            Event::New(id, thing) => drop(self.things.insert(*id, thing.clone())),
            Event::Names(dir, set) => {
                let Some(Thing::Dir { names, .. }) = self.things.get_mut(dir) else {
                    return;
                };
                for (name, id) in set {
                    match id {
                        Some(id) => drop(names.insert(name.clone(), *id)),
                        None => drop(names.remove(name)),
                    }
                }
            }
            Event::Write(id, at, new) => {
                if let Some(Thing::File { bytes, .. }) = self.things.get_mut(id) {
                    let bytes = bytes.to_mut();
                    bytes.resize(bytes.len().max(at + new.len()), 0);
                    bytes[*at..at + new.len()].copy_from_slice(new);
                }
            }
            Event::Truncate(id) => {
                if let Some(Thing::File { bytes, .. }) = self.things.get_mut(id) {
                    bytes.to_mut().clear();
                }
            }
            Event::Mode(id, new) => {
                if let Some(Thing::File { mode, .. }) = self.things.get_mut(id) {
                    *mode = *new;
                }
            }
            Event::SyncFile(_) | Event::SyncDir(_) | Event::SyncAll => {}
        }
    }

    /// What there is under each path, without what nobody can reach.
    pub fn paths(&self) -> BTreeMap<PathBuf, &Thing> {
        let mut all = BTreeMap::new();
        let mut todo: Vec<(PathBuf, Id)> =
            self.tops.iter().map(|(n, id)| (n.into(), *id)).collect();
        while let Some((path, id)) = todo.pop() {
            let thing = &self.things[&id];
            if let Thing::Dir { names, .. } = thing {
                todo.extend(names.iter().map(|(name, id)| (path.join(name), *id)));
            }
            all.insert(path, thing);
        }
        all
    }

    /// The same for the same files under the same names.
    pub fn digest(&self) -> u64 {
        let mut hash = std::hash::DefaultHasher::new();
        for (path, thing) in self.paths() {
            path.hash(&mut hash);
            match thing {
                Thing::Dir { mode, .. } => mode.hash(&mut hash),
                other => other.hash(&mut hash),
            }
        }
        hash.finish()
    }
}

/// A disk at work: what programs see, and what is safe.
#[derive(Debug, Clone)]
pub struct Running {
    pub live: Disk,
    safe: Disk,
    names: Vec<Event>,
    data: Vec<Event>,
}

impl Running {
    pub fn new(disk: Disk) -> Self {
        Self {
            live: disk.clone(),
            safe: disk,
            names: Vec::new(),
            data: Vec::new(),
        }
    }

    pub fn apply(&mut self, event: &Event) {
        self.live.apply(event);
        match event {
            Event::New(..) => self.safe.apply(event),
            Event::Names(..) => self.names.push(event.clone()),
            Event::Write(..) | Event::Truncate(_) | Event::Mode(..) => {
                self.data.push(event.clone());
            }
            Event::SyncFile(file) => self.settle(|of| of == *file, |_| false),
            Event::SyncDir(dir) => self.settle(|_| false, |of| of == *dir),
            Event::SyncAll => self.settle(|_| true, |_| true),
        }
    }

    fn settle(&mut self, file: impl Fn(Id) -> bool, dir: impl Fn(Id) -> bool) {
        let safe = &mut self.safe;
        let mut keep = |events: &mut Vec<Event>, is: &dyn Fn(Id) -> bool| {
            events.retain(|event| {
                let done = is(subject(event));
                if done {
                    safe.apply(event);
                }
                !done
            });
        };
        keep(&mut self.data, &file);
        keep(&mut self.names, &dir);
    }

    /// The disk after a power cut at this moment.
    pub fn cut(&self, left: Left) -> Disk {
        let seed = match left {
            Left::All => return self.live.clone(),
            Left::Synced => return self.safe.clone(),
            Left::Part(seed) => seed,
        };
        let mut random = Random::new(seed);
        let mut disk = self.safe.clone();
        for event in self.names.iter().filter(|_| random.coin()) {
            disk.apply(event);
        }
        for event in &self.data {
            match event {
                Event::Write(id, at, bytes) => {
                    // Now and then all of it, or none: sectors of one write mostly go together.
                    let fate = random.below(4);
                    for (n, sector) in bytes.chunks(SECTOR).enumerate() {
                        if fate == 0 || (fate > 1 && random.coin()) {
                            disk.apply(&Event::Write(*id, at + n * SECTOR, sector.to_vec()));
                        }
                    }
                }
                other if random.coin() => disk.apply(other),
                _ => {}
            }
        }
        disk
    }
}

fn subject(event: &Event) -> Id {
    match event {
        Event::Names(id, _)
        | Event::Write(id, ..)
        | Event::Truncate(id)
        | Event::Mode(id, _)
        | Event::SyncFile(id)
        | Event::SyncDir(id)
        | Event::New(id, _) => *id,
        Event::SyncAll => Id::MAX,
    }
}
