//! A capture as a root: the same questions, answered from memory with the same answers and the same errors.

use std::path::Path;

use rustix::fs::MemfdFlags;
use rustix::io::Errno;

use super::noted::Source;
use super::pci_config::ConfigFile;
use super::reader::Reader;
use super::root::MAX_READ;
use super::{Entry, EntryKind, Root, Stat, SysError};
use crate::capture::{Content, Missing, Node, Place, Tree};

impl Root {
    /// The files of a capture. `path` is the archive; `live`: it is of a running system.
    ///
    /// # Errors
    /// The system is out of descriptors or memory.
    pub fn captured(path: &Path, tree: Tree, live: bool) -> Result<Self, SysError> {
        // Nothing is below it, so whatever goes past the capture finds nothing.
        let dir = rustix::fs::memfd_create("capture", MemfdFlags::CLOEXEC).map_err(|e| {
            SysError::File {
                action: "make room for",
                path: path.into(),
                source: e.into(),
            }
        })?;
        Ok(Self {
            path: path.into(),
            dir,
            live: false,
            shown: Path::new("/").into(),
            source: Source::Captured { tree, live },
            watch: None,
        })
    }

    /// Whether it is the running system, or a capture of one: `/proc` and `/sys` are then its own.
    #[must_use]
    pub fn is_of_running(&self) -> bool {
        match &self.source {
            Source::Captured { live, .. } => *live,
            Source::Plain | Source::Noting(_) => self.live,
        }
    }

    fn missing(&self, action: &'static str, path: &str, why: Missing) -> SysError {
        match why {
            Missing::Errno(errno) => self.error(action, path, Errno::from_raw_os_error(errno)),
            Missing::NotCaptured => SysError::Refused {
                action,
                path: self.outside(path),
                why: "the capture does not have it; take a new one with this version".to_owned(),
            },
        }
    }

    fn place<'t>(
        &self,
        tree: &'t Tree,
        action: &'static str,
        path: &str,
    ) -> Result<&'t Node, SysError> {
        let Place { node, .. } = tree
            .resolve(path, true)
            .map_err(|why| self.missing(action, path, why))?;
        match node.open_error {
            Some(errno) => Err(self.error(action, path, Errno::from_raw_os_error(errno))),
            None => Ok(node),
        }
    }

    pub(super) fn captured_read(&self, tree: &Tree, path: &str) -> Result<Vec<u8>, SysError> {
        let node = self.place(tree, "read", path)?;
        match &node.content {
            Content::Failed(errno) => {
                Err(self.error("read", path, Errno::from_raw_os_error(*errno)))
            }
            _ if node.kind != EntryKind::File => Err(self.not_regular(path)),
            Content::Whole(bytes) => Ok(bytes.clone()),
            Content::None if node.size > MAX_READ => Err(self.too_large(path)),
            Content::None | Content::Parts(_) => {
                Err(self.missing("read", path, Missing::NotCaptured))
            }
        }
    }

    pub(super) fn captured_reader<'t>(
        &self,
        tree: &'t Tree,
        path: &str,
    ) -> Result<Reader<'t>, SysError> {
        let node = self.place(tree, "read", path)?;
        match &node.content {
            Content::Failed(errno) => {
                Err(self.error("read", path, Errno::from_raw_os_error(*errno)))
            }
            _ if node.kind != EntryKind::File => Err(self.not_regular(path)),
            Content::Whole(bytes) => Ok(Reader::bytes(bytes)),
            Content::Parts(parts) => Ok(Reader::parts(parts, node.size)),
            Content::None => Err(self.missing("read", path, Missing::NotCaptured)),
        }
    }

    pub(super) fn captured_list(&self, tree: &Tree, path: &str) -> Result<Vec<Entry>, SysError> {
        let node = match tree.resolve(path, true) {
            Ok(Place { node, .. }) => node,
            Err(Missing::ABSENT) => return Ok(Vec::new()),
            Err(why) => return Err(self.missing("list", path, why)),
        };
        match &node.list {
            Some(Ok(entries)) => Ok(entries.clone()),
            Some(Err(errno)) => Err(self.error("list", path, Errno::from_raw_os_error(*errno))),
            None if node.kind != EntryKind::Dir => Err(self.error("list", path, Errno::NOTDIR)),
            None => Err(self.missing("list", path, Missing::NotCaptured)),
        }
    }

    pub(super) fn captured_link(
        &self,
        tree: &Tree,
        path: &str,
    ) -> Result<Option<String>, SysError> {
        match tree.resolve(path, false) {
            Ok(Place { node, .. }) => Ok(node.target.clone()),
            Err(Missing::ABSENT) => Ok(None),
            Err(why) => Err(self.missing("read the link", path, why)),
        }
    }

    pub(super) fn captured_stat(
        &self,
        tree: &Tree,
        path: &str,
        last: bool,
    ) -> Result<Option<Stat>, SysError> {
        match tree.resolve(path, last) {
            Ok(Place { node, .. }) => Ok(Some(Stat {
                mode: node.mode,
                uid: node.uid,
                gid: node.gid,
                size: node.size,
                kind: node.kind,
            })),
            Err(Missing::Errno(errno))
                if errno == Errno::NOENT.raw_os_error()
                    || errno == Errno::NOTDIR.raw_os_error() =>
            {
                Ok(None)
            }
            Err(why) => Err(self.missing("look at", path, why)),
        }
    }

    pub(super) fn captured_config(&self, tree: &Tree, path: &str) -> Result<ConfigFile, SysError> {
        let Place { node, .. } = tree
            .resolve(path, false)
            .map_err(|why| self.missing("open", path, why))?;
        if let Some(errno) = node.open_error {
            return Err(self.error("open", path, Errno::from_raw_os_error(errno)));
        }
        match (&node.content, node.kind) {
            (Content::Whole(bytes), _) => {
                Ok(ConfigFile::captured(Ok(bytes.clone()), self.outside(path)))
            }
            (Content::Failed(errno), _) => Ok(ConfigFile::captured(
                Err(Errno::from_raw_os_error(*errno)),
                self.outside(path),
            )),
            (_, EntryKind::Link) => Err(self.error("open", path, Errno::LOOP)),
            (_, EntryKind::Dir | EntryKind::Other) => Err(self.not_regular(path)),
            (_, EntryKind::File) => Err(self.missing("open", path, Missing::NotCaptured)),
        }
    }
}
