//! Telling GRUB to boot the trial once, and taking that back: one in-place write of grubenv.

use std::time::Duration;

use grub_config_parser::cmdline::Edit;
use grub_config_parser::grubenv::{DEFAULT_SIZE, EnvBlock};

use super::engine::{Engine, EngineError};
use super::undo::new_args;
use crate::journal::EnvIntent;
use crate::machine::{GrubView, TxnId};
use crate::plan;
use crate::sys::{Root, SysError, boot_write};

impl Engine<'_> {
    pub(super) fn arm(&mut self) -> Result<(), EngineError> {
        let record = self.record()?;
        let id = record.txn.id.clone();
        let path = self.env_path()?;
        self.hook_is_there(id.as_str())?;
        let old = written_env(self.root, &path)?;
        let armed = plan::env_with(&old, id.as_str(), TxnId::NONE)
            .map_err(|why| self.refused(&path, &why))?;
        if armed != old {
            // The machine goes down: unmounting settles it, and a power cut before that may leave it disarmed.
            // The unit that does this may not freeze, either.
            // Not so an image, whose disk may be copied as it is.
            let write = if self.baking {
                boot_write::overwrite
            } else {
                boot_write::overwrite_only
            };
            write(self.root, &path, &old, &armed)?;
        }
        Ok(())
    }

    pub(super) fn disarm(&mut self) -> Result<(), EngineError> {
        let path = self.env_path()?;
        let Some(old) = env_bytes(self.root, &path)? else {
            return Ok(());
        };
        let Ok(env) = EnvBlock::parse(&old) else {
            return Err(self.refused(&path, "it is damaged").into());
        };
        if env.get("gdr_trial").is_none_or(|v| v == TxnId::NONE) {
            return Ok(());
        }
        let taken = env
            .get("gdr_taken")
            .unwrap_or_else(|| TxnId::NONE.to_owned());
        let disarmed =
            plan::env_with(&old, TxnId::NONE, &taken).map_err(|why| self.refused(&path, &why))?;
        boot_write::overwrite(self.root, &path, &old, &disarmed)?;
        Ok(())
    }

    /// Takes our two variables out of grubenv: it is then as it was before the transaction.
    pub(super) fn clean_env(&mut self) -> Result<(), EngineError> {
        let path = self.env_path()?;
        let Some(old) = env_bytes(self.root, &path)? else {
            return Ok(());
        };
        let clean = plan::env_without(&old).map_err(|why| self.refused(&path, &why))?;
        if clean != old {
            boot_write::amend(self.root, &path, &old, &clean)?;
        }
        Ok(())
    }

    /// Sets a variable of grubenv, its old value durable first: never torn (see [`boot_write::amend`]).
    pub(super) fn set_env(&mut self, name: &str, value: &str) -> Result<(), EngineError> {
        let path = self.env_path()?;
        let old = written_env(self.root, &path)?;
        let mut env = EnvBlock::parse(&old).map_err(|e| self.refused(&path, &e.to_string()))?;
        let pre = env.get(name).unwrap_or_default();
        if pre == value {
            return Ok(());
        }
        env.set(name, value)
            .map_err(|e| self.refused(&path, &e.to_string()))?;
        let known = &self.record()?.work.env;
        if !known
            .iter()
            .any(|i| i.name == name && i.pre == pre && i.post == value)
        {
            let intent = EnvIntent {
                name: name.to_owned(),
                pre,
                post: value.to_owned(),
            };
            self.amend("grubenv", |_, work| work.env.push(intent))?;
        }
        boot_write::amend(self.root, &path, &old, env.as_bytes())?;
        Ok(())
    }

    /// Puts a variable of grubenv back; says so when somebody else has set it since.
    pub(super) fn put_env_back(&self, intent: &EnvIntent) -> Result<Option<String>, EngineError> {
        let path = self.env_path()?;
        let old = written_env(self.root, &path)?;
        let mut env = EnvBlock::parse(&old).map_err(|e| self.refused(&path, &e.to_string()))?;
        let now = env.get(&intent.name).unwrap_or_default();
        if now == intent.pre {
            return Ok(None);
        }
        if now != intent.post {
            return self.unpick_env(intent, &path, &old, &mut env).map(Some);
        }
        env.set(&intent.name, &intent.pre)
            .map_err(|e| self.refused(&path, &e.to_string()))?;
        boot_write::amend(self.root, &path, &old, env.as_bytes())?;
        Ok(None)
    }

    /// Takes the policy's arguments out of a value that somebody else has changed since.
    fn unpick_env(
        &self,
        intent: &EnvIntent,
        path: &str,
        old: &[u8],
        env: &mut EnvBlock,
    ) -> Result<String, EngineError> {
        let mut changed = false;
        for arg in new_args(&intent.pre, &intent.post) {
            let edit = Edit::Remove(arg.raw());
            changed |= env
                .edit_argument(&intent.name, &edit)
                .map_err(|e| self.refused(path, &e.to_string()))?;
        }
        if changed {
            boot_write::amend(self.root, path, old, env.as_bytes())?;
        }
        Ok(format!(
            "`{}` in {path} was changed by somebody else since: only the policy's arguments were taken out; it was `{}`",
            intent.name, intent.pre
        ))
    }

    /// Somebody may have rewritten the boot configuration since it was staged.
    fn hook_is_there(&self, id: &str) -> Result<(), EngineError> {
        let dir = grub_dir(self.root)?;
        let custom = format!("{dir}/custom.cfg");
        let text = self.root.read(&custom)?;
        let text = String::from_utf8_lossy(&text);
        if !text.contains(plan::HOOK_BEGIN) || !text.contains(id) {
            return Err(self
                .refused(&custom, "the trial entry is not in it any more")
                .into());
        }
        let menu = self.root.read(&format!("{dir}/grub.cfg"))?;
        if String::from_utf8_lossy(&menu).contains("custom.cfg") {
            Ok(())
        } else {
            Err(self
                .refused(
                    &format!("{dir}/grub.cfg"),
                    "it does not read custom.cfg any more",
                )
                .into())
        }
    }

    fn env_path(&self) -> Result<String, EngineError> {
        Ok(format!("{}/grubenv", grub_dir(self.root)?))
    }
}

/// grubenv, or none if it is not there.
///
/// grub-editenv empties the file before it writes it (util/grub-editenv.c, `fopen` with "wb"), on Debian in the middle of every
/// boot, to forget `recordfail`: what is shorter than a block is looked at again, for a fifth of a second.
pub(super) fn env_bytes(root: &Root, path: &str) -> Result<Option<Vec<u8>>, SysError> {
    let mut bytes = root.read_if_there(path)?;
    for _ in 0..10 {
        if bytes
            .as_ref()
            .is_none_or(|bytes| bytes.len() >= DEFAULT_SIZE)
        {
            break;
        }
        root.sleep(Duration::from_millis(20));
        bytes = root.read_if_there(path)?;
    }
    Ok(bytes)
}

/// The same; an error if it is not there.
fn written_env(root: &Root, path: &str) -> Result<Vec<u8>, SysError> {
    env_bytes(root, path)?.map_or_else(|| root.read(path), Ok)
}

/// GRUB's directory; an error where there is none.
pub(super) fn grub_dir(root: &Root) -> Result<String, SysError> {
    crate::facts::grub_dir(root)?.ok_or_else(|| SysError::Refused {
        action: "write",
        path: root.outside("/boot/grub"),
        why: "there is no GRUB directory".to_owned(),
    })
}

/// What GRUB left in grubenv about a transaction.
#[must_use]
pub fn read_env(root: &Root, id: &str) -> GrubView {
    let read = grub_dir(root).and_then(|dir| env_bytes(root, &format!("{dir}/grubenv")));
    let Ok(Some(bytes)) = read else {
        return GrubView::Unreadable;
    };
    let Ok(env) = EnvBlock::parse(&bytes) else {
        return GrubView::Unreadable;
    };
    if env.get("gdr_trial").as_deref() == Some(id) {
        GrubView::Armed
    } else if env.get("gdr_taken").as_deref() == Some(id) {
        GrubView::Taken
    } else {
        GrubView::Neither
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]
    use super::*;

    #[test]
    fn what_grub_editenv_has_emptied_is_read_when_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("grubenv");
        std::fs::write(&file, "").unwrap();
        let root = Root::open(dir.path()).unwrap();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            std::fs::write(file, [b'#'; DEFAULT_SIZE]).unwrap();
        });
        let bytes = env_bytes(&root, "/grubenv").unwrap().unwrap();
        writer.join().unwrap();
        assert_eq!(bytes.len(), DEFAULT_SIZE);
        // Cut off for good, or not there: as it is.
        std::fs::write(dir.path().join("grubenv"), "short").unwrap();
        assert_eq!(env_bytes(&root, "/grubenv").unwrap().unwrap(), b"short");
        assert_eq!(env_bytes(&root, "/none").unwrap(), None);
    }
}
