//! Looks on while the agent works on a mounted image, and notes after each change what is on the block device.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use gdr_agent::sys::{Change, Watch};
use rustix::io::{Errno, Result};

use super::blocks::{Blocks, Delta};
use super::volume::{Disks, Mounted, freeze_and_thaw};

/// The disks after one change.
#[derive(Debug)]
pub struct Shot {
    /// What was done.
    pub change: String,
    /// How each disk differs from the shot before.
    pub deltas: Vec<Delta>,
}

impl Shot {
    /// Is anything on a disk that was not there at the shot before?
    pub fn differs(&self) -> bool {
        self.deltas.iter().any(|delta| !delta.is_empty())
    }
}

#[derive(Debug)]
struct Disk {
    image: PathBuf,
    /// `/sys/block/loopN/stat`
    stat: PathBuf,
    written: Counter,
    now: Blocks,
}

/// Writes and discards that a device has done.
type Counter = (u64, u64);

#[derive(Debug)]
struct Film {
    disks: Vec<Disk>,
    shots: Vec<Shot>,
}

/// The one who looks on.
#[derive(Debug)]
pub struct Camera {
    freezes: bool,
    film: Mutex<Film>,
}

impl Camera {
    /// On disks that hold `base` and were just mounted. Without `freezes` it is a worse agent, which only
    /// syncs what GRUB reads.
    pub fn on(disks: &Disks, mounted: &Mounted, base: &[Blocks], freezes: bool) -> Self {
        let all = disks.images().into_iter().zip(&mounted.devices).zip(base);
        let disks = all.map(|((image, device), base)| Disk {
            image,
            stat: Path::new("/sys/block")
                .join(device.trim_start_matches("/dev/"))
                .join("stat"),
            written: (u64::MAX, 0),
            now: base.clone(),
        });
        let film = Film {
            disks: disks.collect(),
            shots: Vec::new(),
        };
        let camera = Self {
            freezes,
            film: Mutex::new(film),
        };
        camera.shoot("mount");
        camera
    }

    pub fn shoot(&self, change: &str) {
        let mut film = self.film.lock().unwrap();
        let deltas = film.disks.iter_mut().map(Disk::next).collect();
        film.shots.push(Shot {
            change: change.to_owned(),
            deltas,
        });
    }

    pub fn count(&self) -> usize {
        self.film.lock().unwrap().shots.len()
    }

    pub fn shots(&self) -> Vec<Shot> {
        std::mem::take(&mut self.film.lock().unwrap().shots)
    }
}

impl Disk {
    fn next(&mut self) -> Delta {
        if counter(&self.stat) == Some(self.written) {
            return Vec::new();
        }
        loop {
            let before = counter(&self.stat);
            let now = Blocks::read(&self.image).unwrap();
            // A write that came in between would make it a state that never was.
            if let Some(before) = before
                && counter(&self.stat) == Some(before)
            {
                self.written = before;
                let delta = now.since(&self.now);
                self.now = now;
                return delta;
            }
            std::thread::yield_now();
        }
    }
}

/// None while something is being written (Linux Documentation/block/stat.rst).
fn counter(stat: &Path) -> Option<Counter> {
    let text = std::fs::read_to_string(stat).unwrap();
    let fields: Vec<u64> = text
        .split_whitespace()
        .map(|field| field.parse().unwrap())
        .collect();
    (fields[8] == 0).then_some((fields[4], fields[11]))
}

impl Watch for Camera {
    fn change(&self, change: Change<'_>, make: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        make()?;
        self.shoot(&told(&change));
        if let (Change::SyncAll { dir }, true) = (&change, self.freezes) {
            use std::os::fd::AsRawFd;
            let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
            let dir = std::fs::read_link(link).map_err(|_| Errno::IO)?;
            freeze_and_thaw(&dir).unwrap();
            self.shoot("freeze and thaw");
        }
        Ok(())
    }
}

/// A change in few words.
fn told(change: &Change<'_>) -> String {
    match change {
        Change::Create { name, .. } => format!("create {name}"),
        Change::MakeDir { name, .. } => format!("mkdir {name}"),
        Change::Write { at, bytes, .. } => format!("write {} bytes at {at}", bytes.len()),
        Change::Rename { from, to, .. } => format!("rename {from} to {to}"),
        Change::Link { from, to, .. } => format!("link {from} to {to}"),
        Change::Unlink { name, .. } => format!("unlink {name}"),
        Change::RemoveDir { name, .. } => format!("rmdir {name}"),
        Change::Touch { name, .. } => format!("touch {name}"),
        Change::Truncate { .. } => "truncate".to_owned(),
        Change::Attribute { .. } => "chmod".to_owned(),
        Change::SyncFile { .. } => "fsync".to_owned(),
        Change::SyncDir { .. } => "fsync of a directory".to_owned(),
        Change::SyncAll { .. } => "syncfs".to_owned(),
        other => format!("{other:?}"),
    }
}
