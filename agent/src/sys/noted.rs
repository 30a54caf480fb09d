//! A root that notes what is read: every path, what was there, what was not, and what could not be read. Only a
//! capture is taken so, and it may take its time.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::pci_config::ConfigFile;
use super::reader::Reader;
use super::{Entry, EntryKind, Root, Stat, SysError};
use crate::capture::{self, Content, MOST_LINKS, Node, Tree};

/// Where a root's files come from.
#[derive(Debug)]
pub(super) enum Source {
    /// The directory.
    Plain,
    /// The directory, and what is read is noted.
    Noting(Mutex<Tree>),
    /// A capture.
    Captured {
        /// What is in it.
        tree: Tree,
        /// Whether it is of a running system.
        live: bool,
    },
}

impl Root {
    /// The same root; from now on it notes everything that is read.
    #[must_use]
    pub fn noting(mut self) -> Self {
        self.source = Source::Noting(Mutex::new(Tree::default()));
        self
    }

    /// What was noted.
    #[must_use]
    pub fn noted(self) -> Tree {
        match self.source {
            Source::Noting(tree) => tree.into_inner().unwrap_or_else(PoisonError::into_inner),
            Source::Plain | Source::Captured { .. } => Tree::default(),
        }
    }

    /// Whether each file has to be asked for by its whole path.
    pub(super) fn by_path(&self) -> bool {
        !matches!(self.source, Source::Plain)
    }

    fn with_tree<T>(&self, then: impl FnOnce(&mut Tree) -> T) -> Option<T> {
        match &self.source {
            Source::Noting(tree) => {
                let mut tree = tree.lock().unwrap_or_else(PoisonError::into_inner);
                Some(then(&mut tree))
            }
            Source::Plain | Source::Captured { .. } => None,
        }
    }

    /// Notes everything on the way to a path; its path without links, if something is there.
    pub(super) fn note_path(&self, path: &str, last: bool) -> Option<String> {
        self.with_tree(|tree| self.walk(tree, path, last))?
    }

    fn walk(&self, tree: &mut Tree, path: &str, last: bool) -> Option<String> {
        let mut todo: Vec<String> = parts(path);
        let mut at = String::new();
        let mut links = 0;
        self.look(tree, &at)?.ok()?;
        while let Some(name) = todo.pop() {
            if name == ".." {
                at.truncate(at.rfind('/').unwrap_or(0));
                continue;
            }
            let next = format!("{at}/{name}");
            let target = match self.look(tree, &next)? {
                Ok(target) => target,
                Err(errno) => {
                    // The directory may not be searched: that is true of all below it.
                    if let Some(node) = tree.nodes.get_mut(&at) {
                        node.open_error = Some(errno);
                    }
                    return None;
                }
            };
            if let Some(target) = target.filter(|_| last || !todo.is_empty()) {
                links += 1;
                if links > MOST_LINKS {
                    return None;
                }
                if target.starts_with('/') {
                    at.clear();
                }
                todo.extend(parts(&target));
                continue;
            }
            at = next;
        }
        Some(at)
    }

    /// Notes what one path without links is: a link's target, or the error of looking.
    fn look(&self, tree: &mut Tree, path: &str) -> Option<Result<Option<String>, i32>> {
        if let Some(node) = tree.nodes.get(path) {
            return Some(Ok(node.target.clone()));
        }
        if tree.absent.contains(path) {
            return None;
        }
        match self.plain_stat(path, false) {
            Ok(Some(stat)) => {
                let mut node = of_stat(stat);
                if stat.kind == EntryKind::Link {
                    node.target = self.plain_link(path).ok().flatten();
                }
                let target = node.target.clone();
                tree.nodes.insert(path.to_owned(), node);
                Some(Ok(target))
            }
            Ok(None) => {
                tree.absent.insert(path.to_owned());
                None
            }
            Err(e) => Some(Err(e.errno().unwrap_or(Errno::IO.raw_os_error()))),
        }
    }

    fn note_content(&self, path: &str, content: Content) {
        if let Some(path) = self.note_path(path, true) {
            self.with_tree(|tree| {
                if let Some(node) = tree.nodes.get_mut(&path) {
                    node.content = content;
                }
            });
        }
    }

    pub(super) fn note_read(&self, path: &str, result: &Result<Vec<u8>, SysError>) {
        match result {
            Ok(bytes) => self.note_content(path, Content::Whole(bytes.clone())),
            Err(e) => match e.errno() {
                Some(errno) if !e.is_not_found() => self.note_content(path, Content::Failed(errno)),
                // What it is tells why it was refused.
                _ => {
                    self.note_path(path, true);
                }
            },
        }
    }

    pub(super) fn note_list(&self, path: &str, result: &Result<Vec<Entry>, SysError>) {
        let Some(path) = self.note_path(path, true) else {
            return;
        };
        let list = match result {
            Ok(entries) => Ok(entries.clone()),
            Err(e) => Err(e.errno().unwrap_or(Errno::IO.raw_os_error())),
        };
        self.with_tree(|tree| {
            if let Some(node) = tree.nodes.get_mut(&path) {
                node.list = Some(list);
            }
        });
    }

    /// Notes lines that were read in another way than a file is.
    pub(super) fn note_lines(&self, path: &str, lines: &Result<Vec<String>, SysError>) {
        let text = match lines {
            Ok(lines) => Ok(lines
                .iter()
                .map(|line| format!("6,0,0,-;{line}\n"))
                .collect::<String>()
                .into_bytes()),
            Err(e) => Err(e.errno()),
        };
        match text {
            Ok(bytes) => {
                self.note_content(path, Content::Whole(bytes));
                // It is a device; in the capture it is the text that was read from it.
                self.with_tree(|tree| {
                    if let Some(node) = tree.nodes.get_mut(path) {
                        node.kind = EntryKind::File;
                    }
                });
            }
            Err(Some(errno)) => {
                self.note_content(path, Content::Failed(errno));
                self.with_tree(|tree| {
                    if let Some(node) = tree.nodes.get_mut(path) {
                        node.kind = EntryKind::File;
                    }
                });
            }
            Err(None) => {}
        }
    }

    /// Notes a file that is nowhere: an answer of a program.
    pub(super) fn note_file(&self, path: &str, bytes: Vec<u8>) {
        self.with_tree(|tree| {
            let mut dir = String::new();
            let names: Vec<&str> = capture::parts(path).collect();
            for name in names.iter().take(names.len().saturating_sub(1)) {
                dir = format!("{dir}/{name}");
                tree.absent.remove(&dir);
                let node = tree.nodes.entry(dir.clone());
                node.or_insert_with(|| Node::bare(EntryKind::Dir)).mode |= 0o700;
            }
            tree.absent.remove(path);
            let node = Node {
                mode: 0o600,
                size: bytes.len() as u64,
                content: Content::Whole(bytes),
                ..Node::bare(EntryKind::File)
            };
            tree.nodes.insert(path.to_owned(), node);
        });
    }

    pub(super) fn noting_reader(&self, path: &str) -> Result<Reader<'_>, SysError> {
        match self.regular(path) {
            Ok(file) => Ok(match self.note_path(path, true) {
                Some(path) => Reader::noted(file, self, path),
                None => Reader::file(file),
            }),
            Err(e) => {
                self.note_read(
                    path,
                    &Err(SysError::File {
                        action: "read",
                        path: self.outside(path),
                        source: std::io::Error::from_raw_os_error(
                            e.errno().unwrap_or(Errno::NOENT.raw_os_error()),
                        ),
                    }),
                );
                Err(e)
            }
        }
    }

    /// Notes bytes that were read of a path without links.
    pub(super) fn note_part(&self, path: &str, at: u64, bytes: &[u8]) {
        self.with_tree(|tree| {
            let Some(node) = tree.nodes.get_mut(path) else {
                return;
            };
            match &mut node.content {
                Content::Parts(parts) => insert(parts, at, bytes),
                Content::Whole(_) => {}
                other => {
                    let mut parts = BTreeMap::new();
                    insert(&mut parts, at, bytes);
                    *other = Content::Parts(parts);
                }
            }
        });
    }

    /// A function's configuration space, whole.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(super) fn config(&self, path: &str) -> Result<ConfigFile, SysError> {
        let outside = self.outside(path);
        if let Source::Captured { tree, .. } = &self.source {
            return self.captured_config(tree, path);
        }
        let noted = self.note_path(path, false);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        if let Err(e) = self.open_file(path, flags, "open") {
            let node_error = e.errno();
            self.with_tree(|tree| {
                if let Some(node) = noted.and_then(|path| tree.nodes.get_mut(&path)) {
                    node.open_error = node_error;
                }
            });
            return Err(e);
        }
        match self.read(path) {
            Ok(bytes) => Ok(ConfigFile::captured(Ok(bytes), outside)),
            Err(e) => match e.errno() {
                Some(errno) => Ok(ConfigFile::captured(
                    Err(Errno::from_raw_os_error(errno)),
                    outside,
                )),
                None => Err(e),
            },
        }
    }
}

fn of_stat(stat: Stat) -> Node {
    Node {
        mode: stat.mode,
        uid: stat.uid,
        gid: stat.gid,
        size: stat.size,
        ..Node::bare(stat.kind)
    }
}

/// The names on a path, the first one at the end.
fn parts(path: &str) -> Vec<String> {
    capture::parts(path).rev().map(str::to_owned).collect()
}

/// Adds what is not there yet.
fn insert(parts: &mut BTreeMap<u64, Vec<u8>>, at: u64, bytes: &[u8]) {
    let end = at.saturating_add(bytes.len() as u64);
    let there: Vec<(u64, u64)> = parts
        .iter()
        .map(|(start, part)| (*start, start + part.len() as u64))
        .filter(|(start, stop)| *start < end && *stop > at)
        .collect();
    let mut from = at;
    let mut add = |from: u64, to: u64| {
        let part = usize::try_from(from - at)
            .ok()
            .zip(usize::try_from(to - at).ok())
            .and_then(|(from, to)| bytes.get(from..to));
        if let Some(part) = part.filter(|part| !part.is_empty()) {
            parts.insert(from, part.to_vec());
        }
    };
    for (start, stop) in there {
        if from < start {
            add(from, start);
        }
        from = from.max(stop);
    }
    if from < end {
        add(from, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_overlap() {
        let mut parts = BTreeMap::new();
        insert(&mut parts, 10, b"abcd");
        insert(&mut parts, 20, b"xy");
        insert(&mut parts, 8, b"..abcd......xy..");
        insert(&mut parts, 11, b"bc");
        let all: Vec<(u64, &[u8])> = parts.iter().map(|(at, p)| (*at, p.as_slice())).collect();
        assert_eq!(
            all,
            [
                (8, &b".."[..]),
                (10, b"abcd"),
                (14, b"......"),
                (20, b"xy"),
                (22, b"..")
            ]
        );
    }
}
