//! Editing the arguments of an entry.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use core::fmt;

use super::expand::expand_parts;
use super::snippet::Snippet;
use crate::cfg;
use crate::cmdline::{CommandLine, Edit, edit_line};

/// Why an entry's options are not edited. Nothing is changed then.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionsError {
    /// The line would be left without a value: GRUB stops reading the file at such a line.
    Empty {
        /// The line, from 1.
        line: usize,
    },
    /// The edited line would not give the kernel what was asked for: it has quotes or characters of
    /// GRUB's script language in it, or a quote that is not closed.
    Script {
        /// The line, from 1; 0 for one that would be added.
        line: usize,
        /// The value.
        value: String,
    },
    /// GRUB does not read the value as it stands there: it is not UTF-8, or a NUL or a carriage return is
    /// in it.
    NotText {
        /// The line, from 1.
        line: usize,
    },
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { line } => write!(
                f,
                "line {line}: options would be empty, and GRUB would not read what follows; \
                 leave one argument"
            ),
            Self::Script { line, value } => write!(
                f,
                "line {line}: GRUB would make something else of options {value:?}; change it by hand"
            ),
            Self::NotText { line } => {
                write!(
                    f,
                    "line {line}: options has bytes that are no text; change it by hand"
                )
            }
        }
    }
}

impl core::error::Error for OptionsError {}

impl Snippet {
    /// Changes one argument in the first `options` line, the only one that GRUB takes, all other bytes
    /// kept. `$kernelopts` and other variables stay as they are: what they bring in is not looked at.
    /// A file without options gets a line. `None` where there is nothing to change.
    ///
    /// ```
    /// use grub_config_parser::bls::Snippet;
    /// use grub_config_parser::cmdline::{Arg, Edit};
    /// let file = Snippet::parse("a.conf", b"linux /k\r\noptions  $kernelopts quiet $tuned_params\r\n# end");
    /// let edited = file.edit_options(&Edit::Set(&Arg::new("iommu=pt")))?.unwrap();
    /// assert_eq!(edited.to_bytes(), b"linux /k\r\noptions  $kernelopts quiet $tuned_params iommu=pt\r\n# end");
    /// let edited = file.edit_options(&Edit::Remove("quiet"))?.unwrap();
    /// assert_eq!(edited.to_bytes(), b"linux /k\r\noptions  $kernelopts $tuned_params\r\n# end");
    /// # Ok::<(), grub_config_parser::bls::OptionsError>(())
    /// ```
    ///
    /// # Errors
    /// [`OptionsError`].
    pub fn edit_options(&self, edit: &Edit<'_>) -> Result<Option<Self>, OptionsError> {
        let line = self.line("options").unwrap_or(0);
        let linux = self.value("linux").unwrap_or("k");
        let Some(old) = self.value("options") else {
            return match edit {
                Edit::Set(arg) => {
                    let value = arg.raw().to_string();
                    check(linux, "", &value, edit, line)?;
                    Ok(Some(self.with_value("options", &value)))
                }
                Edit::Remove(_) => Ok(None),
            };
        };
        let new = edit_line(old, edit).map_err(|_| OptionsError::Script {
            line,
            value: old.to_string(),
        })?;
        let Some(new) = new else {
            return Ok(None);
        };
        if !self.is_plain("options") {
            return Err(OptionsError::NotText { line });
        }
        if new.trim().is_empty() {
            return Err(OptionsError::Empty { line });
        }
        check(linux, old, &new, edit, line)?;
        Ok(Some(self.with_value("options", &new)))
    }

    /// The lines, from 1, of further `options` keys, which GRUB does not take.
    pub fn ignored_options(&self) -> alloc::vec::Vec<usize> {
        self.lines_of("options").skip(1).collect()
    }
}

/// The arguments that the kernel gets of a value, all variables set to some text or none set.
fn arguments(linux: &str, value: &str, set: bool) -> CommandLine {
    let variable = |name: &str| (set && !name.is_empty()).then_some("variable");
    let Some((options, _)) = expand_parts(value, variable) else {
        return CommandLine::default();
    };
    let script = alloc::format!("linux {linux} {options}\n");
    let (args, _) = cfg::linux_args(&script, &[], &BTreeMap::new());
    CommandLine::parse(&cfg::loader_quote(args.iter().map(String::as_str)))
}

fn check(
    linux: &str,
    old: &str,
    new: &str,
    edit: &Edit<'_>,
    line: usize,
) -> Result<(), OptionsError> {
    // The blank behind a variable that is not set goes with it, which can glue words together.
    let as_asked = [true, false].into_iter().all(|set| {
        let mut wanted = arguments(linux, old, set);
        edit.apply(&mut wanted);
        arguments(linux, new, set).equivalent(&wanted)
    });
    if as_asked {
        return Ok(());
    }
    Err(OptionsError::Script {
        line,
        value: new.to_string(),
    })
}
