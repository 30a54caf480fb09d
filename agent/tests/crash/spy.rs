//! Looks on while the agent changes files: records, stops it, lets a change fail, or makes the mistake that a worse
//! agent would make.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use gdr_agent::sys::{Change, Watch};
use rustix::fs::{AtFlags, fstat, statat};
use rustix::io::{Errno, Result};

use crate::bugs::Bug;
use crate::model::{Disk, Event, Id, Thing};
use crate::random::Random;

/// What to do besides recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

/// What is known of a disk: its content, and which inode is which thing.
#[derive(Debug, Default)]
pub struct Known {
    pub next: Id,
    pub ids: HashMap<u64, Id>,
    pub disk: Disk,
}

/// The clocks and the chance that the agent is given in the place of the machine's.
#[derive(Debug, Clone)]
pub struct Nature {
    /// Seconds since 1970. It stands still.
    pub time: u64,
    /// Only waiting moves it.
    pub since_boot: Duration,
    pub random: Random,
}

#[derive(Debug)]
struct Notes {
    order: Order,
    bug: Option<Bug>,
    count: usize,
    known: Known,
    events: Vec<Event>,
    /// How many events there were before each change.
    marks: Vec<usize>,
    nature: Option<Nature>,
}

/// What was seen.
#[derive(Debug)]
pub struct Seen {
    pub known: Known,
    pub events: Vec<Event>,
    pub marks: Vec<usize>,
    pub since_boot: Duration,
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
        Self::knowing(Known { next, ids, disk }, bug, order, None)
    }

    /// One who knows it already.
    pub fn knowing(known: Known, bug: Option<Bug>, order: Order, nature: Option<Nature>) -> Self {
        Self(Mutex::new(Notes {
            order,
            bug,
            count: 0,
            known,
            events: Vec::new(),
            marks: Vec::new(),
            nature,
        }))
    }

    pub fn seen(&self) -> Seen {
        let mut notes = self.0.lock().unwrap();
        Seen {
            known: std::mem::take(&mut notes.known),
            events: std::mem::take(&mut notes.events),
            marks: std::mem::take(&mut notes.marks),
            since_boot: notes
                .nature
                .as_ref()
                .map_or(Duration::ZERO, |n| n.since_boot),
        }
    }

    /// The disk as it is by what was seen.
    pub fn disk(&self) -> Disk {
        self.0.lock().unwrap().known.disk.clone()
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
        let mark = notes.events.len();
        notes.marks.push(mark);
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
        if let Change::Write { file, at: 0, bytes } = &change
            && let Some(other) = instead(bug, notes.nature.is_some(), bytes)
        {
            rustix::io::pwrite(file, &other, 0)?;
            let id = notes.id(file)?;
            notes.add(Event::Write(id.unwrap_or(Id::MAX), 0, other));
            return Ok(());
        }
        make()?;
        notes.note(&change)
    }

    fn unix_now(&self) -> Option<u64> {
        self.0.lock().unwrap().nature.as_ref().map(|n| n.time)
    }

    fn since_boot(&self) -> Option<Duration> {
        self.0.lock().unwrap().nature.as_ref().map(|n| n.since_boot)
    }

    fn sleep(&self, time: Duration) -> bool {
        let mut notes = self.0.lock().unwrap();
        notes
            .nature
            .as_mut()
            .map(|n| n.since_boot += time)
            .is_some()
    }

    fn random(&self, bytes: &mut [u8]) -> bool {
        let mut notes = self.0.lock().unwrap();
        let Some(nature) = &mut notes.nature else {
            return false;
        };
        bytes.fill_with(|| nature.random.next().to_le_bytes()[7]);
        true
    }
}

/// What is written in the place of these bytes: a worse agent's, or the same without the number of this process.
fn instead(bug: Option<Bug>, same_each_time: bool, bytes: &[u8]) -> Option<Vec<u8>> {
    let other = bug.and_then(|bug| bug.instead(bytes));
    let holder = bytes.strip_prefix(b"pid ").filter(|_| same_each_time);
    other.or_else(|| {
        let who = holder?.iter().position(|b| *b == b':')?;
        Some([b"pid 1", &holder?[who..]].concat())
    })
}

fn needs_room(change: &Change<'_>) -> bool {
    matches!(
        change,
        Change::Create { .. } | Change::MakeDir { .. } | Change::Link { .. }
    ) || matches!(change, Change::Write { bytes, .. } if !bytes.is_empty())
}

impl Notes {
    fn id(&self, file: &impl AsFd) -> Result<Option<Id>> {
        Ok(self.known.ids.get(&fstat(file)?.st_ino).copied())
    }

    fn add(&mut self, event: Event) {
        self.known.disk.apply(&event);
        self.events.push(event);
    }

    fn note(&mut self, change: &Change<'_>) -> Result<()> {
        match change {
            Change::Create { dir, name } | Change::MakeDir { dir, name } => {
                let Some(dir_id) = self.id(dir)? else {
                    return Ok(());
                };
                if self
                    .known
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
                        bytes: Vec::new().into(),
                        mode,
                    },
                    _ => Thing::Dir {
                        names: Default::default(),
                        mode,
                    },
                };
                let id = self.known.next;
                self.known.next += 1;
                self.known.ids.insert(stat.st_ino, id);
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
            .known
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
