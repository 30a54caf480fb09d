//! Files as they were found, by their path without links: the content of an archive.

use std::collections::{BTreeMap, BTreeSet};

use crate::sys::{Entry, EntryKind};

/// As many links as Linux follows (include/linux/namei.h `MAXSYMLINKS`).
pub(crate) const MOST_LINKS: usize = 40;

/// Everything that was found, and what was looked for and not found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// By absolute path without links and without a slash at the end; the root itself is the empty path.
    pub nodes: BTreeMap<String, Node>,
    /// Paths that were looked for and are not there.
    pub absent: BTreeSet<String>,
}

/// One file, directory or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes, as `stat(2)` had it.
    pub size: u64,
    /// Where a link leads, as written.
    pub target: Option<String>,
    /// The error of opening it.
    pub open_error: Option<i32>,
    /// What is in a directory, or the error of listing it.
    pub list: Option<Result<Vec<Entry>, i32>>,
    /// What is in a file.
    pub content: Content,
}

/// What is known of a file's content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Content {
    /// It was not read.
    #[default]
    None,
    /// All of it.
    Whole(Vec<u8>),
    /// Parts of a large file, by their offsets.
    Parts(BTreeMap<u64, Vec<u8>>),
    /// The error of reading it.
    Failed(i32),
}

impl Node {
    /// A node of which only the kind is known.
    #[must_use]
    pub fn bare(kind: EntryKind) -> Self {
        Self {
            kind,
            mode: 0,
            uid: 0,
            gid: 0,
            size: 0,
            target: None,
            open_error: None,
            list: None,
            content: Content::None,
        }
    }
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place<'t> {
    /// The path without links.
    pub path: String,
    /// What is there.
    pub node: &'t Node,
}

/// Why a path leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// The error that the system gave, or would give.
    Errno(i32),
    /// Nobody looked when the capture was taken.
    NotCaptured,
}

impl Missing {
    /// It is known not to be there.
    pub const ABSENT: Self = Self::Errno(rustix::io::Errno::NOENT.raw_os_error());
}

impl Tree {
    /// Follows a path as the kernel does below a root: absolute links begin there, and `..` does not leave it.
    /// `last`: follow a link that the path itself is.
    ///
    /// # Errors
    /// [`Missing`]
    pub fn resolve(&self, path: &str, last: bool) -> Result<Place<'_>, Missing> {
        let mut todo: Vec<String> = parts(path).rev().map(str::to_owned).collect();
        let mut at = String::new();
        let mut links = 0;
        while let Some(name) = todo.pop() {
            if name == ".." {
                at.truncate(at.rfind('/').unwrap_or(0));
                continue;
            }
            let next = format!("{at}/{name}");
            let node = self.lookup(&at, &next)?;
            if let Some(target) = node.target.as_ref().filter(|_| last || !todo.is_empty()) {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Missing::Errno(rustix::io::Errno::LOOP.raw_os_error()));
                }
                if target.starts_with('/') {
                    at.clear();
                }
                todo.extend(parts(target).rev().map(str::to_owned));
                continue;
            }
            if !todo.is_empty() && node.kind != EntryKind::Dir {
                return Err(Missing::Errno(rustix::io::Errno::NOTDIR.raw_os_error()));
            }
            if !todo.is_empty()
                && let Some(errno) = node.open_error
            {
                return Err(Missing::Errno(errno));
            }
            at = next;
        }
        let node = self.nodes.get(&at).ok_or(Missing::NotCaptured)?;
        Ok(Place { path: at, node })
    }

    fn lookup(&self, dir: &str, path: &str) -> Result<&Node, Missing> {
        if let Some(node) = self.nodes.get(path) {
            return Ok(node);
        }
        if self.absent.contains(path) {
            return Err(Missing::ABSENT);
        }
        // A directory that was listed without the name does not have it.
        let listed = self.nodes.get(dir).and_then(|node| node.list.as_ref());
        match listed {
            Some(Ok(entries)) => {
                let name = path.rsplit('/').next().unwrap_or_default();
                if entries.iter().any(|entry| entry.name == name) {
                    Err(Missing::NotCaptured)
                } else {
                    Err(Missing::ABSENT)
                }
            }
            _ => Err(Missing::NotCaptured),
        }
    }
}

/// The names on a path.
pub(crate) fn parts(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|name| !matches!(*name, "" | "."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        let mut add = |path: &str, node: Node| tree.nodes.insert(path.to_owned(), node);
        let link = |target: &str| Node {
            target: Some(target.to_owned()),
            ..Node::bare(EntryKind::Link)
        };
        for dir in ["", "/sys", "/sys/bus", "/sys/devices", "/etc"] {
            add(dir, Node::bare(EntryKind::Dir));
        }
        add("/sys/devices/a", Node::bare(EntryKind::File));
        add("/sys/bus/a", link("../devices/a"));
        add("/sys/bus/up", link("../../../../sys/devices/a"));
        add("/etc/abs", link("/sys/bus/a"));
        add("/etc/loop", link("loop"));
        add(
            "/etc",
            Node {
                list: Some(Ok(vec![Entry {
                    name: "unread".into(),
                    kind: EntryKind::File,
                }])),
                ..Node::bare(EntryKind::Dir)
            },
        );
        tree.absent.insert("/sys/none".into());
        tree
    }

    #[test]
    fn links_are_followed_inside() {
        let tree = tree();
        for path in [
            "/sys/bus/a",
            "/sys/bus/up",
            "/etc/abs",
            "/etc/../sys//devices/./a",
        ] {
            assert_eq!(
                tree.resolve(path, true).unwrap().path,
                "/sys/devices/a",
                "{path}"
            );
        }
        assert_eq!(tree.resolve("/etc/abs", false).unwrap().path, "/etc/abs");
        assert_eq!(tree.resolve("/", true).unwrap().path, "");
    }

    #[test]
    fn absent_is_not_unknown() {
        let tree = tree();
        let why = |path: &str| tree.resolve(path, true).unwrap_err();
        assert_eq!(why("/sys/none/below"), Missing::ABSENT);
        assert_eq!(why("/etc/not-listed"), Missing::ABSENT);
        assert_eq!(why("/etc/unread"), Missing::NotCaptured);
        assert_eq!(why("/var/x"), Missing::NotCaptured);
        assert_eq!(why("/sys/devices/a/b"), Missing::Errno(20));
        assert_eq!(why("/etc/loop"), Missing::Errno(40));
    }
}
