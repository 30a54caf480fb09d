//! Looks on while the agent changes files: records, stops it, lets a change fail, or makes the mistake that a worse
//! agent would make.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Mutex;

use gdr_agent::sys::{Change, Watch};
use rustix::fs::{AtFlags, fstat, statat};
use rustix::io::{Errno, Result};

use crate::bugs::Bug;
use crate::model::{Disk, Event, Id, Thing};

/// What to do besides recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Nothing.
    Look,
    /// Let every change from this one on fail: as a kill leaves the disk.
    Stop(usize),
    /// Let this one change fail, and no other.
    Fail(usize, Errno),
    /// Let every change fail that needs room, from this one on for so many.
    Full(usize, usize),
}

#[derive(Debug)]
struct Notes {
    order: Order,
    bug: Option<Bug>,
    count: usize,
    next: Id,
    ids: HashMap<u64, Id>,
    disk: Disk,
    events: Vec<Event>,
}

/// The one who looks on.
#[derive(Debug)]
pub struct Spy(Mutex<Notes>);

impl Spy {
    /// One who knows what is on the disk of the node in `root`.
    pub fn on(root: &Path, bug: Option<Bug>, order: Order) -> Self {
        let mut ids = HashMap::new();
        let mut next = 0;
        let disk = Disk::scan(root, &mut next, &mut |inode, id| {
            ids.insert(inode, id);
        });
        Self(Mutex::new(Notes {
            order,
            bug,
            count: 0,
            next,
            ids,
            disk,
            events: Vec::new(),
        }))
    }

    /// The disk as it is by what was seen.
    pub fn disk(&self) -> Disk {
        self.0.lock().unwrap().disk.clone()
    }

    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().events.clone()
    }
}

impl Watch for Spy {
    fn change(&self, change: Change<'_>, make: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut notes = self.0.lock().unwrap();
        let at = notes.count;
        notes.count += 1;
        match notes.order {
            Order::Stop(from) if at >= from => return Err(Errno::IO),
            Order::Fail(this, errno) if at == this => return Err(errno),
            Order::Full(from, for_) if at >= from && at < from + for_ && needs_room(&change) => {
                return Err(Errno::NOSPC);
            }
            _ => {}
        }
        let bug = notes.bug;
        if bug.is_some_and(|bug| bug.forgets(&change)) {
            return Ok(());
        }
        if let (Change::Write { file, at: 0, bytes }, Some(bug)) = (&change, bug)
            && let Some(other) = bug.instead(bytes)
        {
            rustix::io::pwrite(file, &other, 0)?;
            let id = notes.id(file)?;
            notes.add(Event::Write(id.unwrap_or(Id::MAX), 0, other));
            return Ok(());
        }
        make()?;
        notes.note(&change)
    }
}

fn needs_room(change: &Change<'_>) -> bool {
    matches!(
        change,
        Change::Create { .. } | Change::MakeDir { .. } | Change::Link { .. }
    ) || matches!(change, Change::Write { bytes, .. } if !bytes.is_empty())
}

impl Notes {
    fn id(&self, file: &impl AsFd) -> Result<Option<Id>> {
        Ok(self.ids.get(&fstat(file)?.st_ino).copied())
    }

    fn add(&mut self, event: Event) {
        self.disk.apply(&event);
        self.events.push(event);
    }

    fn note(&mut self, change: &Change<'_>) -> Result<()> {
        match change {
            Change::Create { dir, name } | Change::MakeDir { dir, name } => {
                let Some(dir_id) = self.id(dir)? else {
                    return Ok(());
                };
                if self
                    .disk
                    .names(dir_id)
                    .is_some_and(|names| names.contains_key(*name))
                {
                    return Ok(());
                }
                let stat = statat(dir, *name, AtFlags::SYMLINK_NOFOLLOW)?;
                let mode = stat.st_mode & 0o7777;
                let thing = match change {
                    Change::Create { .. } => Thing::File {
                        bytes: Vec::new(),
                        mode,
                    },
                    _ => Thing::Dir {
                        names: Default::default(),
                        mode,
                    },
                };
                let id = self.next;
                self.next += 1;
                self.ids.insert(stat.st_ino, id);
                self.add(Event::New(id, thing));
                self.add(Event::Names(dir_id, vec![((*name).to_owned(), Some(id))]));
            }
            Change::Write { file, at, bytes } => {
                if let Some(id) = self.id(file)? {
                    let at = usize::try_from(*at).map_err(|_| Errno::FBIG)?;
                    self.add(Event::Write(id, at, bytes.to_vec()));
                }
            }
            Change::Truncate { file } => {
                if let Some(id) = self.id(file)? {
                    self.add(Event::Truncate(id));
                }
            }
            Change::Attribute { file } => {
                if let Some(id) = self.id(file)? {
                    self.add(Event::Mode(id, fstat(file)?.st_mode & 0o7777));
                }
            }
            Change::Rename { dir, from, to } => self.names(dir, from, &[to], true)?,
            Change::Link { dir, from, to } => self.names(dir, from, &[to], false)?,
            Change::Unlink { dir, name } | Change::RemoveDir { dir, name } => {
                self.names(dir, name, &[], true)?;
            }
            Change::Touch { .. } => {}
            Change::SyncFile { file } => {
                if let Some(id) = self.id(file)? {
                    self.add(Event::SyncFile(id));
                }
            }
            Change::SyncDir { dir } => {
                if let Some(id) = self.id(dir)? {
                    self.add(Event::SyncDir(id));
                }
            }
            Change::SyncAll { .. } => self.add(Event::SyncAll),
            _ => panic!("a change that the tests do not know: {change:?}"),
        }
        Ok(())
    }

    fn names(&mut self, dir: &impl AsFd, from: &str, to: &[&str], goes: bool) -> Result<()> {
        let Some(dir) = self.id(dir)? else {
            return Ok(());
        };
        let id = self
            .disk
            .names(dir)
            .and_then(|names| names.get(from))
            .copied();
        let Some(id) = id else { return Ok(()) };
        let mut set: Vec<_> = to
            .iter()
            .map(|name| ((*name).to_owned(), Some(id)))
            .collect();
        if goes {
            set.push((from.to_owned(), None));
        }
        self.add(Event::Names(dir, set));
        Ok(())
    }
}
