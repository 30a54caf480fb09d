//! The effective command line: the arguments that an entry boots with and, for each, where it is written.
//!
//! Nothing is guessed. An argument's [`Argument::origins`] lead from the line that GRUB reads to the lines
//! that made it so: a `set` in `grub.cfg`, a line of the environment block, an assignment in
//! `/etc/default/grub` or a drop-in. What cannot be told is left out, and [`Argument::complete`] says so.
//!
//! ```
//! use grub_config_parser::cfg::{Context, Script};
//! use grub_config_parser::defaults::{Document, File, evaluate};
//! use grub_config_parser::effective::{Sources, Tracer};
//! let grub = Document::parse(b"GRUB_CMDLINE_LINUX_DEFAULT=quiet\n");
//! let gpu = Document::parse(b"GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt\"\n");
//! let defaults = evaluate(&[
//!     File { name: "default/grub", doc: &grub },
//!     File { name: "default/grub.d/gpu.cfg", doc: &gpu },
//! ]);
//! let text = [
//!     "### BEGIN /etc/grub.d/10_linux ###",
//!     "menuentry A { linux /k root=/dev/sda1 ro  quiet iommu=pt; }",
//!     "### END /etc/grub.d/10_linux ###",
//! ];
//! let script = Script::parse(text.join("\n").as_bytes())?;
//! let tracer = Tracer::new(&Sources {
//!     grub_cfg: Some(("grub.cfg", &script)),
//!     defaults: Some(&defaults),
//!     ..Sources::default()
//! });
//! let menu = script.menu(&Context::default());
//! let arguments = tracer.menu_entry(&menu.entries[0]);
//! let shown: Vec<String> = arguments.iter().map(ToString::to_string).collect();
//! assert_eq!(shown[0], "root=/dev/sda1  grub.cfg:2 < /etc/grub.d/10_linux");
//! assert_eq!(shown[2], "quiet  grub.cfg:2 < default/grub:1 (GRUB_CMDLINE_LINUX_DEFAULT)");
//! assert_eq!(shown[3], "iommu=pt  grub.cfg:2 < default/grub.d/gpu.cfg:1 (GRUB_CMDLINE_LINUX_DEFAULT)");
//! # Ok::<(), grub_config_parser::cfg::SyntaxError>(())
//! ```

mod mkconfig;
mod variables;

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use crate::bls::{self, Snippet};
use crate::cfg::{self, Came, LineTrace, Script};
use crate::cmdline::{Arg, arg_ranges};
use crate::defaults::Evaluation;
use crate::grubenv::EnvBlock;
use crate::origin::Origin;

use mkconfig::Generated;
pub use variables::Variables;

/// One argument that an entry boots with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument {
    /// The argument.
    pub arg: Arg,
    /// Where it is written: first the line that GRUB reads for the entry, then what that line takes its
    /// text from. An argument that is put together from several places has them all.
    pub origins: Vec<Origin>,
    /// True if every byte of it is accounted for. False where something came by a way that is not
    /// followed: a function's parameter, `eval`, a variable that nothing known has set.
    pub complete: bool,
    /// The script of `grub-mkconfig` that has written the text, or the line that sets the variable it is
    /// in, where no shell variable is known that it comes from: a change lasts until the file is made anew.
    pub generator: Option<String>,
}

impl Argument {
    /// The place to change: the last of the origins, if the way to it is known and no generator has
    /// written it.
    pub fn written(&self) -> Option<&Origin> {
        let known = self.complete && self.generator.is_none();
        self.origins.last().filter(|_| known)
    }
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  ", self.arg)?;
        for (i, origin) in self.origins.iter().enumerate() {
            write!(f, "{}{origin}", if i > 0 { " < " } else { "" })?;
        }
        if let Some(generator) = &self.generator {
            write!(f, " < {generator}")?;
        }
        match (self.complete, self.origins.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => f.write_str("unknown"),
            (false, false) => f.write_str(" < unknown"),
        }
    }
}

/// The files that are known, each with the name that shall be shown. All are optional: what is not given
/// is not told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sources<'a> {
    /// `grub.cfg`.
    pub grub_cfg: Option<(&'a str, &'a Script)>,
    /// The environment block.
    pub grubenv: Option<(&'a str, &'a EnvBlock)>,
    /// What `grub-mkconfig` gets from `/etc/default/grub` and its drop-ins.
    pub defaults: Option<&'a Evaluation>,
}

/// Tells where arguments come from.
#[derive(Debug)]
pub struct Tracer<'a> {
    sources: Sources<'a>,
    generated: Option<Generated>,
}

impl<'a> Tracer<'a> {
    /// Looks once through the files.
    pub fn new(sources: &Sources<'a>) -> Self {
        let generated = sources
            .grub_cfg
            .map(|(_, script)| Generated::new(script, sources.defaults));
        Self {
            sources: *sources,
            generated,
        }
    }

    /// The arguments of a `grub.cfg` entry, in order: the same as its `cmdline`. The entry must come
    /// from the script that was given.
    pub fn menu_entry(&self, entry: &cfg::Entry) -> Vec<Argument> {
        let copied = match (&self.generated, self.sources.grub_cfg) {
            (Some(generated), Some((_, script))) => generated.copied(script, entry),
            _ => None,
        };
        let line = entry.trace.line;
        let own = line.and_then(|line| Some(Origin::new(self.sources.grub_cfg?.0, line, None)));
        let origin = |came: &Came, into: &mut Chain| match came {
            Came::Text(bytes) => {
                let range = bytes.range();
                let led = copied
                    .as_ref()
                    .is_some_and(|copied| copied.add(&range, into));
                if !led && let Some(generated) = &self.generated {
                    into.generator = generated.script_at(range.start).or(into.generator.take());
                }
            }
            Came::Variable(set) => self.set_by(self.set_at(&set.0, set.1), into),
            Came::Unknown => into.step(None),
        };
        arguments(&entry.raw, &entry.trace, |came, chain| {
            chain.first(own.clone());
            origin(came, chain);
        })
    }

    /// The arguments of an entry of [`bls::menu`], in order. `file` is the entry's own file and `name` how
    /// it shall be shown; `variables` are those that the menu was made with.
    pub fn bls_entry(
        &self,
        entry: &bls::Entry,
        file: &Snippet,
        name: &str,
        variables: &Variables,
    ) -> Vec<Argument> {
        let key = |key: &str| Some(Origin::new(name, file.line(key)?, None));
        arguments(&entry.raw, &entry.trace, |came, chain| match came {
            // What the entry's script has: the path, a blank, the options.
            Came::Text(bytes) => match entry.options(&bytes.range()) {
                Some(pieces) => {
                    for piece in pieces {
                        match piece {
                            bls::Piece::Text => chain.first(key("options")),
                            bls::Piece::Variable { name, default } => {
                                chain.first(if default { None } else { key("options") });
                                self.set_by(variables.origin(&name), chain);
                                self.kernelopts(&name, variables, chain);
                            }
                        }
                    }
                }
                None => chain.first(key("linux")),
            },
            Came::Variable(set) => {
                chain.first(key("options"));
                self.set_by(variables.origin(&set.0), chain);
            }
            Came::Unknown => {
                chain.first(key("options"));
                chain.step(None);
            }
        })
    }

    /// A variable is set there: perhaps on a line that a generator has written.
    fn set_by(&self, origin: Option<Origin>, chain: &mut Chain) {
        if let (Some(origin), Some((name, _)), Some(generated)) =
            (&origin, self.sources.grub_cfg, &self.generated)
            && origin.file == name
            && let Some(script) = generated.script_at_line(origin.line)
        {
            chain.generator = Some(script);
        }
        chain.step(origin);
    }

    /// Leads an argument in EL8's `kernelopts` to the shell assignment that it was copied from.
    fn kernelopts(&self, name: &str, variables: &Variables, chain: &mut Chain) {
        let (Some(generated), Some(value)) = (&self.generated, variables.value(name)) else {
            return;
        };
        if name == "kernelopts"
            && let Some(origins) = generated.kernelopts(value, &chain.raw)
        {
            chain.generator = None;
            for origin in origins {
                chain.step(Some(origin));
            }
        }
    }

    fn set_at(&self, name: &str, at: cfg::SetAt) -> Option<Origin> {
        match at {
            cfg::SetAt::Line(line) => Some(Origin::new(self.sources.grub_cfg?.0, line, Some(name))),
            cfg::SetAt::Env => {
                let (file, block) = self.sources.grubenv?;
                Some(Origin::new(file, block.line(name)?, Some(name)))
            }
            cfg::SetAt::Unknown => None,
        }
    }
}

/// The origins of one argument, as they are put together.
#[derive(Default)]
struct Chain {
    /// The argument as the kernel gets it.
    raw: String,
    origins: Vec<Origin>,
    incomplete: bool,
    generator: Option<String>,
}

impl Chain {
    /// The line that GRUB reads; nothing is lost where there is none but other origins follow.
    fn first(&mut self, origin: Option<Origin>) {
        if let Some(origin) = origin
            && !self.origins.contains(&origin)
        {
            self.origins.push(origin);
        }
    }

    /// One more place; `None` is a way that is not followed.
    fn step(&mut self, origin: Option<Origin>) {
        self.incomplete |= origin.is_none();
        self.first(origin);
    }
}

/// Splits a line as the kernel does and asks for each argument where its pieces come from.
fn arguments(
    raw: &str,
    trace: &LineTrace,
    mut origin: impl FnMut(&Came, &mut Chain),
) -> Vec<Argument> {
    let argument = |range: Range<usize>| {
        let arg = Arg::new(raw.get(range.clone()).unwrap_or(""));
        let mut chain = Chain {
            raw: String::from(arg.raw()),
            ..Chain::default()
        };
        match trace.of(&range) {
            Some(came) => {
                for came in came {
                    origin(came, &mut chain);
                }
            }
            None => chain.incomplete = true,
        }
        Argument {
            arg,
            complete: !chain.incomplete && !chain.origins.is_empty(),
            origins: chain.origins,
            generator: chain.generator,
        }
    };
    arg_ranges(raw).map(argument).collect()
}
