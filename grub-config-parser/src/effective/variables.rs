//! The variables that BLS entries refer to.

use alloc::collections::BTreeMap;
use alloc::string::String;

use super::Tracer;
use crate::cfg::Menu;
use crate::grubenv::EnvBlock;
use crate::origin::Origin;

/// Variables, each with its value and the place that has set it.
///
/// ```
/// use grub_config_parser::effective::Variables;
/// use grub_config_parser::grubenv::EnvBlock;
/// let mut block = EnvBlock::empty();
/// block.set("kernelopts", "root=/dev/sda1 ro")?;
/// let variables = Variables::from_env("grubenv", &block);
/// assert_eq!(variables.values()["kernelopts"], "root=/dev/sda1 ro");
/// assert_eq!(variables.origin("kernelopts").unwrap().to_string(), "grubenv:2 (kernelopts)");
/// # Ok::<(), grub_config_parser::grubenv::EnvError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variables {
    set: BTreeMap<String, (String, Option<Origin>)>,
}

impl Variables {
    /// Those of an environment block: what entries see where no `grub.cfg` is known.
    pub fn from_env(name: &str, block: &EnvBlock) -> Self {
        let set = block.iter().map(|(variable, value)| {
            let line = block.line(&variable);
            let origin = line.map(|line| Origin::new(name, line, Some(&variable)));
            (variable, (value, origin))
        });
        Self { set: set.collect() }
    }

    /// Their values, as [`crate::bls::menu`] takes them.
    pub fn values(&self) -> BTreeMap<String, String> {
        let values = self.set.iter();
        values
            .map(|(name, (value, _))| (name.clone(), value.clone()))
            .collect()
    }

    /// The value of one.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.set.get(name).map(|(value, _)| value.as_str())
    }

    /// Where a variable was set; `None` where that is not known or it is not set.
    pub fn origin(&self, name: &str) -> Option<Origin> {
        self.set.get(name)?.1.clone()
    }
}

impl Tracer<'_> {
    /// The variables as they are when the script runs `blscfg`: from `set` commands and, once the script
    /// runs `load_env`, from the environment block.
    pub fn bls_variables(&self, menu: &Menu) -> Variables {
        let set = menu.bls_variables.iter().map(|(name, setting)| {
            let origin = self.set_at(name, setting.at);
            (name.clone(), (setting.value.clone(), origin))
        });
        Variables { set: set.collect() }
    }
}
