//! One argument.

use alloc::boxed::Box;
use core::fmt;

use super::names::names_equal;
use super::split::next_arg;

/// One kernel argument, kept as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arg {
    raw: Box<str>,
    name: (u32, u32),
    value: Option<(u32, u32)>,
}

impl Arg {
    /// Takes one argument as it stands on a command line, for example `iommu=pt`, `quiet` or
    /// `dyndbg="file x +p"`. Blanks around it are dropped. The text is taken whole: a blank outside
    /// quotes makes it more than one argument for the kernel (see [`Arg::is_single`]).
    pub fn new(raw: &str) -> Self {
        Self::from_trimmed(raw.trim_matches(super::line::is_ascii_space_char))
    }

    pub(super) fn from_trimmed(raw: &str) -> Self {
        let bytes = raw.as_bytes();
        let (parsed, _) = next_arg(bytes, |_| false);
        let name = locate(bytes, parsed.name);
        let value = parsed.value.map(|value| locate(bytes, value));
        Self {
            raw: raw.into(),
            name,
            value,
        }
    }

    /// Makes `name=value`, with quotes around the value where it has a blank.
    pub fn with_value(name: &str, value: &str) -> Self {
        let quote = if value.contains(super::line::is_ascii_space_char) {
            "\""
        } else {
            ""
        };
        Self::from_trimmed(&alloc::format!("{name}={quote}{value}{quote}"))
    }

    /// The text as written, quotes included.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The name as written: no folding of `-` and `_`.
    pub fn name(&self) -> &str {
        self.part(self.name)
    }

    /// The value with the quotes stripped as the kernel strips them; `None` without `=`.
    pub fn value(&self) -> Option<&str> {
        self.value.map(|range| self.part(range))
    }

    /// True if `name` is this argument's name for the kernel: `-` and `_` are the same.
    pub fn same_name(&self, name: &str) -> bool {
        names_equal(self.name(), name)
    }

    /// True if both mean the same to the kernel: the same name, folded, and the same value.
    pub fn same(&self, other: &Arg) -> bool {
        self.same_name(other.name()) && self.value() == other.value()
    }

    /// True if the kernel reads this text as exactly one argument.
    pub fn is_single(&self) -> bool {
        super::split::split_bytes(self.raw.as_bytes()).len() == 1
    }

    /// True for the `--` that ends the kernel's own arguments; what follows goes to init.
    pub fn is_separator(&self) -> bool {
        self.name() == "--" && self.value.is_none()
    }

    fn part(&self, (start, end): (u32, u32)) -> &str {
        self.raw.get(start as usize..end as usize).unwrap_or("")
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(self) + self.raw.len()
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.raw)
    }
}

/// The place of `part`, a slice of `whole`, as offsets.
fn locate(whole: &[u8], part: &[u8]) -> (u32, u32) {
    let start = (part.as_ptr() as usize)
        .saturating_sub(whole.as_ptr() as usize)
        .min(whole.len());
    let offset = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    (offset(start), offset(start + part.len()))
}
