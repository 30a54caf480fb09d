//! Writing a file of the node under the journal: the pre-image and the intent are durable first.

use super::engine::{Engine, EngineError};
use crate::journal::{Image, Intent, image_of};
use crate::sys::{boot_write, write};

/// What to know about a file that is written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kind {
    /// GRUB reads it.
    pub(super) boot: bool,
    /// Other programs regenerate it.
    pub(super) generated: bool,
}

impl Engine<'_> {
    /// Makes a file have these bytes, or not be there. Nothing is done when it is so already.
    pub(super) fn write_file(
        &mut self,
        path: &str,
        bytes: Option<&[u8]>,
        kind: Kind,
    ) -> Result<(), EngineError> {
        let (pre, old) = image_of(self.root, path)?;
        let post = bytes.map_or(Image::Absent, |bytes| image_with(&pre, bytes));
        if pre.same_bytes(&post) {
            return Ok(());
        }
        let intents = &self.record()?.work.intents;
        let known = intents.iter().rposition(|i| i.path == path);
        let resumed = known
            .and_then(|at| intents.get(at))
            .filter(|i| pre.same_bytes(&i.pre) || pre.same_bytes(&i.post))
            .cloned();
        if let (Some(at), Some(mut intent)) = (known, resumed) {
            // The same change again, after an interruption: its first pre-image is the one to go back to.
            intent.post = post;
            self.amend("intent", |_, work| {
                if let Some(slot) = work.intents.get_mut(at) {
                    *slot = intent;
                }
            })?;
        } else {
            let blob = old.map(|old| self.journal.save_blob(&old)).transpose()?;
            let intent = Intent {
                path: path.to_owned(),
                pre,
                post,
                blob,
                boot: kind.boot,
                generated: kind.generated,
            };
            self.amend("intent", |_, work| work.intents.push(intent))?;
        }
        match (bytes, kind.boot) {
            (Some(bytes), true) => boot_write::replace(self.root, path, bytes, None)?,
            (Some(bytes), false) => write::replace(self.root, path, bytes, None)?,
            (None, true) => boot_write::remove(self.root, path)?,
            (None, false) => write::remove(self.root, path)?,
        }
        Ok(())
    }
}

fn image_with(pre: &Image, bytes: &[u8]) -> Image {
    let sha256 = crate::journal::sha256(bytes);
    let attributes = match pre {
        Image::File { attributes, .. } => *attributes,
        Image::Absent => write::Attributes {
            mode: 0o644,
            uid: 0,
            gid: 0,
        },
    };
    Image::File { sha256, attributes }
}
