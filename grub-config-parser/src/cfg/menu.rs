//! Running a script and reading its menu.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::{self, Vec};
use core::iter::Enumerate;

use super::ast::Slice;
use super::body::{Command, LinuxLine, is_initrd, is_linux, loader_quote};
use super::env::Env;
use super::machine::{Code, Files, Machine, Ran, RawEntry, RawMenu};
use super::room::Incomplete;
use super::script::Script;
use super::select::{chosen, default_index, rest_of_default};
use super::traced::{LineTrace, Places, Setting};
use crate::bls::{Order, Snippet};
use crate::cmdline::CommandLine;
use crate::lines::Lines;
use crate::room::Room;

/// What GRUB would find when it runs the script.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// What the environment block holds; it counts once the script runs `load_env`.
    pub env: BTreeMap<String, String>,
    /// True if the block exists, even without variables. A block that holds some always exists.
    pub env_present: bool,
    /// Ends of paths that `-e`, `-f` and `-s` find besides the environment block: `/custom.cfg`.
    pub existing: Vec<String>,
    /// Variables that are set when the script starts: `prefix`, `root`, `grub_platform`. Exported, as
    /// GRUB's own are.
    pub variables: BTreeMap<String, String>,
    /// True if a later `load_env` sees what `save_env` has written.
    pub keep_saved: bool,
    /// True for Red Hat's and Fedora's GRUB, where `default` is an id before it is a number. Elsewhere a
    /// default that begins with a digit is a number, whatever follows.
    pub ids_first: bool,
    /// The directory that `blscfg` reads; `None` where it is not known, and then no entry comes from it.
    pub bls: Option<Bls>,
}

/// What `blscfg` finds, and how this GRUB orders it.
#[derive(Debug, Clone)]
pub struct Bls {
    /// The files of `loader/entries`.
    pub files: Vec<Snippet>,
    /// The order of the GRUB that is installed.
    pub order: Order,
}

impl Context {
    /// A context with an environment block that holds these variables.
    pub fn with_env(env: BTreeMap<String, String>) -> Self {
        Self {
            env,
            env_present: true,
            ..Self::default()
        }
    }
}

/// The menu that a script makes.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Menu {
    /// The entries that can be booted, depth first; a submenu is not one.
    pub entries: Vec<Entry>,
    /// The entry that boots if nobody touches the machine; `None` only without entries.
    pub default: Option<usize>,
    /// Where the default, or the submenu that it is in, stands in the outermost menu: what `fallback` would
    /// call it.
    pub default_place: usize,
    /// The value of `superusers`; if it is not empty, an entry without `unrestricted` asks for a
    /// password.
    pub superusers: Option<String>,
    /// The files that `source`, `.` and `configfile` name anywhere in the script, as written there.
    pub sources: Vec<String>,
    /// True if `load_env` stands anywhere in the script.
    pub loads_env: bool,
    /// The value of `timeout` after the script.
    pub timeout: Option<String>,
    /// True if `blscfg` stands anywhere in the script: entries come from files of their own, too.
    pub uses_blscfg: bool,
    /// The variables as they are when the script runs `blscfg`; empty where it does not.
    pub bls_variables: BTreeMap<String, Setting>,
    /// Why this is not the whole menu, if it is not: what GRUB would show or boot is not known then.
    pub incomplete: Option<Incomplete>,
}

impl Menu {
    /// The menu, if it is the whole of it.
    ///
    /// ```
    /// use grub_config_parser::cfg::{Context, Incomplete, Script};
    /// let script = Script::parse(b"menuentry a { linux /k; }\nwhile true; do true; done\n")?;
    /// let menu = script.menu(&Context::default());
    /// assert_eq!(menu.complete().unwrap_err(), Incomplete::Endless);
    /// # Ok::<(), grub_config_parser::cfg::SyntaxError>(())
    /// ```
    ///
    /// # Errors
    /// Why it is not.
    pub fn complete(self) -> Result<Self, Incomplete> {
        match self.incomplete {
            Some(why) => Err(why),
            None => Ok(self),
        }
    }
}

/// One entry of a menu.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Entry {
    /// The title.
    pub title: String,
    /// The `--id`, or the title.
    pub id: String,
    /// Each `--class`.
    pub classes: Vec<String>,
    /// True if everybody may boot it.
    pub unrestricted: bool,
    /// The `--users`.
    pub users: Option<String>,
    /// The first argument of the last `linux` command.
    pub kernel: Option<String>,
    /// The arguments of the last `initrd` command.
    pub initrds: Vec<String>,
    /// What the loader gives the kernel, without `BOOT_IMAGE=`.
    pub raw: String,
    /// `raw`, split as the kernel does.
    pub cmdline: CommandLine,
    /// The titles of the submenus around it, outermost first.
    pub submenu_path: Arc<[String]>,
    /// The `linux` command, where it stands in the entry's own body.
    pub linux_line: Option<LinuxLine>,
    /// What the body runs before the last `linux` command, words expanded.
    pub commands: Vec<Command>,
    /// The place among [`Bls::files`] of the file that `blscfg` made it of.
    pub bls: Option<usize>,
    /// Where `raw` comes from.
    pub(crate) trace: LineTrace,
}

/// GRUB 2.06's own variables.
const FEATURES: &[&str] = &[
    "feature_chainloader_bpb",
    "feature_ntldr",
    "feature_platform_search_hint",
    "feature_default_font_path",
    "feature_all_video_module",
    "feature_menuentry_id",
    "feature_menuentry_options",
    "feature_200_final",
    "feature_nativedisk_cmd",
    "feature_timeout_style",
];

/// One menu whose entries are being looked at.
struct Level {
    entries: Enumerate<vec::IntoIter<Box<RawEntry>>>,
    env: Env,
    status: Option<i32>,
    path: Arc<[String]>,
    /// The entry that boots, if this menu is on the way of the default.
    default: Option<usize>,
}

impl Script {
    /// Runs the script once and then each entry's body, in memory, and gives the menu. A script that does
    /// not end, or would fill the memory, is stopped, and the menu says so: [`Menu::incomplete`].
    pub fn menu(&self, context: &Context) -> Menu {
        let files = Files {
            env: (context.env_present || !context.env.is_empty()).then_some(&context.env),
            existing: &context.existing,
            keep_saved: context.keep_saved,
            bls: context.bls.as_ref(),
        };
        let bls = context.bls.iter().flat_map(|bls| &bls.files);
        let env = context.env.iter();
        let input = self.source().len()
            + bls.map(Snippet::size).sum::<usize>()
            + env
                .map(|(name, value)| name.len() + value.len())
                .sum::<usize>();
        let mut machine = Machine::new(&files, Room::new(input, self.bytes()));
        let own = FEATURES.iter().map(|name| (*name, "y"));
        let given = context
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in own.chain(given) {
            machine.env.set(name.as_bytes(), value.as_bytes(), None);
            machine.env.export(name.as_bytes());
        }
        machine.own = Some(self.ast.clone());
        machine.run(Code {
            ast: self.ast.clone(),
            list: self.ast.root(),
        });
        let mut menu = Menu {
            superusers: machine.env.text("superusers"),
            timeout: machine.env.text("timeout"),
            ..Menu::default()
        };
        self.scan(&mut machine, &mut menu);
        let lines = Lines::new(self.source());
        let places = Places {
            own: &self.ast,
            offset: &|at| self.original_offset(at),
            line: &|at| lines.line(at),
        };
        if let Some(env) = machine.at_blscfg.take() {
            menu.bls_variables = places.settings(&env);
        }
        self.collect(&mut machine, &mut menu, context.ids_first, &lines, &places);
        if menu.default.is_none() && !menu.entries.is_empty() {
            menu.default = Some(0);
        }
        menu.incomplete = machine.incomplete;
        menu
    }

    fn scan(&self, machine: &mut Machine<'_>, menu: &mut Menu) {
        for words in self.commands() {
            match words {
                (b"source" | b"." | b"configfile", Some(file)) => {
                    // In a list that grows.
                    if !machine.hold(3 * size_of::<String>() + 3 * file.len()) {
                        return;
                    }
                    menu.sources
                        .push(String::from_utf8_lossy(file).into_owned());
                }
                (b"load_env", _) => menu.loads_env = true,
                (b"blscfg", _) => menu.uses_blscfg = true,
                _ => {}
            }
        }
    }

    fn collect(
        &self,
        machine: &mut Machine<'_>,
        menu: &mut Menu,
        ids_first: bool,
        lines: &Lines<'_>,
        places: &Places<'_>,
    ) {
        let depth = machine.depth;
        let entries = core::mem::take(&mut machine.menu);
        let default = default_index(machine.env.get(b"default"), &entries, ids_first);
        menu.default_place = default;
        let mut levels = alloc::vec![level(machine, menu, entries, Arc::default(), Some(default))];
        while let Some(level) = levels.last_mut() {
            let Some((index, raw)) = level.entries.next() else {
                machine.room.give_back(level.env.bytes());
                levels.pop();
                continue;
            };
            let path: usize = level.path.iter().map(|title| title.len() + 24).sum();
            if !machine.burn(level.env.bytes() + path) {
                break;
            }
            let on_way = level.default == Some(index);
            let env = &level.env;
            machine.env = if raw.submenu {
                env.exported()
            } else {
                env.clone()
            };
            enter(&mut machine.env, env, &raw.id);
            machine.record = !raw.submenu;
            machine.scope = Some(raw.args.clone());
            machine.depth = depth;
            // `$?` is a variable that nothing exports.
            let status = level.status.filter(|_| !raw.submenu);
            machine.status = status.unwrap_or(0);
            machine.has_status = status.is_some();
            if let Some(body) = &raw.body {
                machine.run(body.clone());
            }
            let path = Arc::clone(&level.path);
            if raw.submenu {
                let entries = core::mem::take(&mut machine.menu);
                let default =
                    on_way.then(|| default_index(machine.env.get(b"default"), &entries, ids_first));
                let title = String::from_utf8_lossy(&raw.title).into_owned();
                let path: Arc<[String]> = path.iter().cloned().chain([title]).collect();
                if !machine.hold(path.iter().map(|title| title.len() + 24).sum()) {
                    break;
                }
                levels.push(self::level(machine, menu, entries, path, default));
                continue;
            }
            machine.menu.clear();
            let ran = core::mem::take(&mut machine.ran);
            if machine.incomplete == Some(Incomplete::TooLarge) {
                break;
            }
            if on_way {
                menu.default = Some(menu.entries.len());
            }
            let entry = self.entry(&raw, &ran, path, (lines, places));
            machine.room.give_back(ran.iter().map(Ran::bytes).sum());
            drop(ran);
            if !machine.hold(entry.bytes()) || !make_room(machine, &mut menu.entries, 1) {
                break;
            }
            menu.entries.push(entry);
        }
    }

    fn entry(
        &self,
        raw: &RawEntry,
        ran: &[Ran],
        submenu_path: Arc<[String]>,
        (lines, places): (&Lines<'_>, &Places<'_>),
    ) -> Entry {
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let called = |ran: &Ran, wanted: fn(&[u8]) -> bool| {
            ran.argv.first().is_some_and(|name| wanted(name))
        };
        let linux = ran.iter().rposition(|ran| called(ran, is_linux));
        let before = ran.get(..linux.unwrap_or(ran.len())).unwrap_or(ran);
        let linux = linux.and_then(|index| ran.get(index));
        let args: Vec<String> =
            linux.map_or_else(Vec::new, |ran| ran.argv.iter().skip(2).map(text).collect());
        let mut line = loader_quote(args.iter().map(String::as_str));
        line.shrink_to_fit();
        let initrd = ran.iter().rev().find(|ran| called(ran, is_initrd));
        Entry {
            title: text(&raw.title),
            id: text(&raw.id),
            classes: raw.classes.iter().map(text).collect(),
            unrestricted: raw.unrestricted,
            users: raw.users.as_ref().map(text),
            kernel: linux.and_then(|ran| ran.argv.get(1)).map(text),
            initrds: initrd
                .map_or_else(Vec::new, |ran| ran.argv.iter().skip(1).map(text).collect()),
            cmdline: CommandLine::parse(&line),
            raw: line,
            submenu_path,
            linux_line: linux.and_then(|ran| self.linux_line(raw, ran, lines)),
            trace: linux.map_or_else(LineTrace::default, |ran| places.line_trace(ran, 2)),
            commands: before.iter().map(Command::new).collect(),
            bls: raw.bls,
        }
    }

    fn linux_line(&self, raw: &RawEntry, ran: &Ran, lines: &Lines) -> Option<LinuxLine> {
        let own = |ast| alloc::sync::Arc::ptr_eq(ast, &self.ast);
        // Only this script's own text has places, and only what stands inside the entry is its own.
        if !own(&ran.ast) || !own(&raw.body.as_ref()?.ast) {
            return None;
        }
        let words: Vec<Slice> = self.ast.words(ran.at).collect();
        let (start, end) = (ran.at as usize, words.last()?.end as usize);
        let block = raw.span?.range();
        if start < block.start || end > block.end {
            return None;
        }
        let kernel_word = *ran.origins.get(1)?;
        // The kernel's word must be the kernel and nothing else.
        if ran
            .origins
            .iter()
            .filter(|word| **word == kernel_word)
            .count()
            != 1
        {
            return None;
        }
        let kernel = words.get(kernel_word)?.end as usize;
        let offset = |at: usize| self.original_offset(at);
        // The end is the byte behind the last one that belongs to it.
        let behind = |at: usize| at.checked_sub(1).map_or(0, |last| offset(last) + 1);
        let span = match words.get(kernel_word + 1) {
            Some(first) => offset(first.start as usize)..behind(end),
            None => behind(kernel)..behind(kernel),
        };
        Some(LinuxLine {
            line: lines.line(offset(start)),
            args_span: span,
        })
    }
}

impl Entry {
    /// About how many bytes it takes besides its place in the list.
    fn bytes(&self) -> usize {
        let list = |texts: &[String]| -> usize {
            texts
                .iter()
                .map(|text| size_of_val(text) + text.len())
                .sum()
        };
        let option = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.title.len()
            + self.id.len()
            + list(&self.classes)
            + list(&self.initrds)
            + option(&self.users)
            + option(&self.kernel)
            + self.raw.len()
            + self.cmdline.bytes()
            + self.commands.iter().map(Command::bytes).sum::<usize>()
            + self.trace.bytes()
    }
}

/// Begins to look at a menu.
fn level(
    machine: &mut Machine<'_>,
    menu: &mut Menu,
    entries: RawMenu,
    path: Arc<[String]>,
    default: Option<usize>,
) -> Level {
    make_room(machine, &mut menu.entries, entries.len());
    let env = core::mem::take(&mut machine.env);
    machine.hold(env.bytes());
    Level {
        entries: entries.into_iter().enumerate(),
        env,
        status: machine.has_status.then_some(machine.status),
        path,
        default,
    }
}

/// Makes a list longer, for at least so many more, if there is memory for it.
fn make_room(machine: &mut Machine<'_>, entries: &mut Vec<Entry>, more: usize) -> bool {
    let (before, needed) = (entries.capacity(), entries.len() + more);
    if needed <= before {
        return true;
    }
    let new = needed.max(before + before / 2);
    // While it is copied both are there.
    let fits = machine.hold(new * size_of::<Entry>());
    if fits {
        entries.reserve_exact(new - entries.len());
        machine.room.give_back(before * size_of::<Entry>());
    }
    fits
}

/// Sets what GRUB sets before it runs an entry.
fn enter(inner: &mut Env, outer: &Env, id: &[u8]) {
    inner.set(b"chosen", &chosen(outer.get(b"chosen"), id), None);
    inner.export(b"chosen");
    match outer.get(b"default").and_then(rest_of_default) {
        Some(rest) => inner.set(b"default", rest, None),
        None => inner.unset(b"default"),
    }
}
