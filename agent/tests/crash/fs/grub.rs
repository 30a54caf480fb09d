//! What GRUB reads of a disk that was not unmounted: GRUB's own code, through `grub-fstest`, which replays no
//! journal. And what GRUB writes there.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gdr_tests::node::Tree;
use gdr_tests::node::grub::{self, Booted, Firmware};

use super::volume::{run, text};

/// GRUB counts in these.
const SECTOR: u64 = 512;

/// The disk that /boot is on, as GRUB finds it.
#[derive(Debug)]
pub struct Loader<'a> {
    pub image: &'a Path,
    /// `/boot`, or nothing where it has a disk for itself.
    pub below: &'static str,
    /// `/usr/lib/os-release` of the node, by which the model knows what GRUB's directory is called.
    pub os_release: &'a [u8],
    /// The disk can be written.
    pub writable: bool,
}

/// What GRUB has seen of a disk, with what it wrote there.
#[derive(Debug)]
pub struct View(tempfile::TempDir);

impl View {
    /// Is everything that GRUB reads as it is in `root`, and nothing missing?
    pub fn is_that_of(&self, root: &Path) -> bool {
        let files = |root: &Path| {
            let mut all = Vec::new();
            let mut todo = vec![root.join("boot")];
            while let Some(dir) = todo.pop() {
                for entry in fs::read_dir(&dir).unwrap() {
                    let path = entry.unwrap().path();
                    let name = path.file_name().unwrap().to_string_lossy().into_owned();
                    if path.is_dir() {
                        todo.push(path);
                    } else if !dir.ends_with("boot") && !is_the_agents(&name) {
                        let bytes = fs::read(&path).unwrap();
                        all.push((path.strip_prefix(root).unwrap().to_owned(), bytes));
                    }
                }
            }
            all.sort();
            all
        };
        files(self.0.path()) == files(root)
    }
}

/// Names that are there while the agent writes; nothing in GRUB's configuration reads them.
fn is_the_agents(name: &str) -> bool {
    name.starts_with(".gdr-agent-") || name.ends_with(".gdr-agent-old")
}

impl Loader<'_> {
    /// From power-on to a kernel; what GRUB saves is on the image then.
    pub fn boot(&self) -> Result<(Booted, View), String> {
        let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
        let root = dir.path();
        self.read(root)?;
        let env = ["boot/grub/grubenv", "boot/grub2/grubenv"]
            .into_iter()
            .find(|path| root.join(path).exists());
        let blocks = match env {
            Some(env) => self.blocks(env)?,
            None => Vec::new(),
        };
        let before = env.map(|env| fs::read(root.join(env)).unwrap());
        let room = blocks.iter().map(|(_, length)| length).sum::<u64>();
        let needed = before.as_ref().map_or(0, |bytes| bytes.len() as u64);
        // "sparse file not allowed": GRUB finds no blocks of the file on btrfs, where they have checksums.
        let writable = self.writable && room >= needed;
        let booted = grub::boot(&Tree::new(root), Firmware { writable });
        if let (Some(env), Some(before)) = (env, before) {
            let after = fs::read(root.join(env)).map_err(|e| e.to_string())?;
            if after != before {
                self.write(&blocks, &after)?;
            }
        }
        Ok((booted.map_err(|e| e.to_string())?, View(dir)))
    }

    /// Puts into `root` what GRUB sees below /boot; of kernels and the like, that they are there.
    fn read(&self, root: &Path) -> Result<(), String> {
        let io = |e: std::io::Error| e.to_string();
        fs::create_dir_all(root.join("usr/lib")).map_err(io)?;
        fs::write(root.join("usr/lib/os-release"), self.os_release).map_err(io)?;
        let mut todo = vec!["boot".to_owned()];
        while let Some(dir) = todo.pop() {
            fs::create_dir_all(root.join(&dir)).map_err(io)?;
            let path = format!("{}/", self.path(&dir));
            for name in run("grub-fstest", &[text(self.image), "ls", &path])?.split_whitespace() {
                match name.strip_suffix('/') {
                    Some(name) if name != "lost+found" => todo.push(format!("{dir}/{name}")),
                    Some(_) => {}
                    None if is_the_agents(name) => {}
                    None => {
                        let path = format!("{dir}/{name}");
                        let bytes = match dir.as_str() {
                            "boot" => Some(Vec::new()),
                            _ => self.cat(&path)?,
                        };
                        if let Some(bytes) = bytes {
                            fs::write(root.join(path), bytes).map_err(io)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn path(&self, path: &str) -> String {
        let path = path.trim_start_matches("boot");
        format!("{}{path}", self.below)
    }

    /// None where GRUB has the name and cannot read the file.
    fn cat(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let output = Command::new("grub-fstest")
            .args([text(self.image), "cat", &self.path(path)])
            .output()
            .map_err(|e| e.to_string())?;
        Ok(output.status.success().then_some(output.stdout))
    }

    /// Where on the disk the bytes of a file are: offsets and lengths.
    fn blocks(&self, path: &str) -> Result<Vec<(u64, u64)>, String> {
        let said = run(
            "grub-fstest",
            &[text(self.image), "blocklist", &self.path(path)],
        )?;
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|e| format!("blocklist `{said}`: {e}"))
        };
        said.split(',')
            .filter(|one| !one.is_empty())
            .map(|one| match one.split_once('+') {
                Some((first, count)) => Ok((number(first)? * SECTOR, number(count)? * SECTOR)),
                None => Err(format!("blocklist `{said}`")),
            })
            .collect()
    }

    fn write(&self, blocks: &[(u64, u64)], bytes: &[u8]) -> Result<(), String> {
        let io = |e: std::io::Error| e.to_string();
        let image: PathBuf = self.image.to_owned();
        let file = OpenOptions::new().write(true).open(image).map_err(io)?;
        let mut rest = bytes;
        for (at, length) in blocks {
            let (now, later) = rest.split_at(rest.len().min(usize::try_from(*length).unwrap()));
            file.write_all_at(now, *at).map_err(io)?;
            rest = later;
        }
        Ok(())
    }
}
