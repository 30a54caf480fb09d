//! Arguments inside a variable: `kernelopts`, `tuned_params`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{EnvBlock, EnvError, scan_value, unescape};
use crate::cmdline::{Edit, edit_line};

impl EnvBlock {
    /// Changes one argument in a variable's value, all other bytes of the value kept. False if there is
    /// nothing to change.
    ///
    /// ```
    /// use grub_config_parser::cmdline::{Arg, Edit};
    /// use grub_config_parser::grubenv::EnvBlock;
    /// let mut block = EnvBlock::empty();
    /// block.set("kernelopts", "root=/dev/sda1 ro  rhgb ")?;
    /// assert!(block.edit_argument("kernelopts", &Edit::Set(&Arg::new("iommu=pt")))?);
    /// assert!(block.edit_argument("kernelopts", &Edit::Remove("ro"))?);
    /// assert_eq!(block.get("kernelopts").as_deref(), Some("root=/dev/sda1  rhgb iommu=pt "));
    /// # Ok::<(), grub_config_parser::grubenv::EnvError>(())
    /// ```
    ///
    /// # Errors
    /// Nothing is changed then: [`EnvError::NoSpace`] (see [`EnvError::missing`]), [`EnvError::NotSet`],
    /// [`EnvError::Twice`], [`EnvError::NotText`], [`EnvError::Quote`], or those of [`EnvBlock::set`].
    pub fn edit_argument(&mut self, name: &str, edit: &Edit<'_>) -> Result<bool, EnvError> {
        let shown = || name.to_string();
        match self.iter().filter(|(own, _)| own == name).count() {
            0 => return Err(EnvError::NotSet { name: shown() }),
            1 => {}
            // GRUB reads the last one, an edit in place would change the first.
            _ => return Err(EnvError::Twice { name: shown() }),
        }
        let used = self.bytes.len() - self.free();
        let start = self.find(name.as_bytes(), used);
        let raw = start.and_then(|start| self.bytes.get(start..scan_value(&self.bytes, start)));
        let value: Option<Vec<u8>> = raw.map(|raw| unescape(raw).collect());
        let text = value.and_then(|value| String::from_utf8(value).ok());
        // What was found must be what GRUB reads.
        let text = text.filter(|text| self.get(name).as_ref() == Some(text));
        let text = text.ok_or_else(|| EnvError::NotText { name: shown() })?;
        match edit_line(&text, edit) {
            Ok(Some(edited)) => {
                let mut block = self.clone();
                block.set(name, &edited)?;
                // In a damaged block the line that is edited need not be the one that is read.
                if block.get(name).as_ref() != Some(&edited) {
                    return Err(EnvError::Twice { name: shown() });
                }
                *self = block;
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => Err(EnvError::Quote {
                name: shown(),
                error,
            }),
        }
    }
}

impl EnvError {
    /// For [`EnvError::NoSpace`]: how many bytes of padding are missing.
    pub fn missing(&self) -> Option<usize> {
        match self {
            Self::NoSpace { needed, left, .. } => Some(needed.saturating_sub(*left)),
            _ => None,
        }
    }
}
