//! Running a script: GRUB's `script/execute.c` without recursion and with an end.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ast::{Ast, Kind, Slice};
use super::env::Env;
use super::room::{Incomplete, texts};
use super::traced::{Setter, Trace};
use crate::room::Room;

/// A list of commands in the tree it belongs to.
#[derive(Debug, Clone)]
pub(super) struct Code {
    pub(super) ast: Arc<Ast>,
    pub(super) list: Slice,
}

/// What a `menuentry` or `submenu` command has put into the menu.
#[derive(Debug, Clone, Default)]
pub(super) struct RawEntry {
    pub(super) title: Vec<u8>,
    pub(super) id: Vec<u8>,
    pub(super) classes: Vec<Vec<u8>>,
    pub(super) users: Option<Vec<u8>>,
    pub(super) unrestricted: bool,
    /// The title and the words behind it: the body's positional parameters.
    pub(super) args: Vec<Vec<u8>>,
    /// `None` where the body is text that does not parse.
    pub(super) body: Option<Code>,
    /// The text of the block, where `body` is the block that stands behind the command.
    pub(super) span: Option<Slice>,
    pub(super) submenu: bool,
    /// The file that `blscfg` made it of.
    pub(super) bls: Option<usize>,
}

/// The entries of a menu. They are large, and a list that grows needs three times its size.
#[allow(clippy::vec_box, reason = "the list itself stays small")]
pub(super) type RawMenu = Vec<Box<RawEntry>>;

/// A command that a body has run.
#[derive(Debug, Clone)]
pub(super) struct Ran {
    pub(super) argv: Vec<Vec<u8>>,
    /// Where the command's words begin, and the tree that they are in.
    pub(super) at: u32,
    pub(super) ast: Arc<Ast>,
    /// For each of `argv` the word that it began in; empty where `!` stands before the command.
    pub(super) origins: Vec<usize>,
    /// For a `linux` command, where its words come from.
    pub(super) trace: Option<Trace>,
}

impl Ran {
    /// About what it takes, in a list that grows.
    pub(super) fn bytes(&self) -> usize {
        let trace = self.trace.as_ref().map_or(0, super::traced::Trace::bytes);
        let origins = self.origins.capacity() * size_of::<usize>();
        3 * size_of::<Self>() + 2 * texts(&self.argv) + origins + trace
    }
}

impl RawEntry {
    /// About what it takes and the menu's entry that is made of it, without the commands of its body.
    fn bytes(&self) -> usize {
        let id = self.title.len() + self.id.len() + self.users.as_ref().map_or(0, Vec::len);
        let list = 3 * size_of::<Box<Self>>();
        size_of::<Self>() + list + 2 * id + 3 * texts(&self.classes) + texts(&self.args)
    }
}

pub(super) struct Files<'a> {
    /// What `load_env` finds.
    pub(super) env: Option<&'a BTreeMap<alloc::string::String, alloc::string::String>>,
    pub(super) existing: &'a [alloc::string::String],
    pub(super) keep_saved: bool,
    /// What `blscfg` finds.
    pub(super) bls: Option<&'a super::menu::Bls>,
}

pub(super) enum Frame {
    /// `script`: GRUB runs a script's lines one by one, and `return` only ends the line.
    List { code: Code, next: u32, script: bool },
    /// `clause` is the condition that has run; `end` is behind the last clause.
    If {
        ast: Arc<Ast>,
        clause: u32,
        end: u32,
    },
    For {
        ast: Arc<Ast>,
        name: Slice,
        body: Slice,
        values: Vec<Vec<u8>>,
        next: usize,
        /// What the values take.
        cost: usize,
    },
    While {
        ast: Arc<Ast>,
        condition: Slice,
        body: Slice,
        until: bool,
        in_body: bool,
    },
    Call {
        scope: Option<Vec<Vec<u8>>>,
        loops: u64,
        invert: bool,
        /// What the arguments take.
        cost: usize,
    },
    /// A list run by `eval`.
    Eval { invert: bool },
    /// The end of a construct: one level less.
    Leave,
}

/// How much running a script and its entries may do: one unit a command, one for 16 bytes that are
/// made or copied.
const FUEL: u64 = 8_000_000;

/// What a function takes besides its name.
const FUNCTION: usize = 120;

/// `MAX_RECURSION_DEPTH`: how deep commands, lists and calls may nest when they run.
const DEPTH: usize = 64;

/// `GRUB_ERR_RECURSION_DEPTH`
const TOO_DEEP: i32 = 47;

pub(super) struct Machine<'a> {
    pub(super) files: &'a Files<'a>,
    pub(super) env: Env,
    pub(super) saved: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    pub(super) functions: BTreeMap<Vec<u8>, Code>,
    pub(super) scope: Option<Vec<Vec<u8>>>,
    pub(super) menu: RawMenu,
    /// The commands run, where `record` is on.
    pub(super) ran: Vec<Ran>,
    pub(super) record: bool,
    fuel: u64,
    pub(super) room: Room,
    /// Why the run was stopped, if it was.
    pub(super) incomplete: Option<Incomplete>,
    pub(super) frames: Vec<Frame>,
    /// Levels in use. As in GRUB, each refusal of a deeper one loses one for ever.
    pub(super) depth: usize,
    /// The status of the last command.
    pub(super) status: i32,
    /// False until a command has ended: `$?` is not set then.
    pub(super) has_status: bool,
    pub(super) loops: u64,
    pub(super) breaks: u64,
    pub(super) is_continue: bool,
    pub(super) returning: bool,
    /// The script whose places have lines.
    pub(super) own: Option<Arc<Ast>>,
    /// The command that is being run, if it stands in that script.
    pub(super) at: Option<Setter>,
    /// The variables when `blscfg` ran first.
    pub(super) at_blscfg: Option<Env>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(files: &'a Files<'a>, room: Room) -> Self {
        Self {
            files,
            env: Env::default(),
            saved: BTreeMap::new(),
            functions: BTreeMap::new(),
            scope: None,
            menu: Vec::new(),
            ran: Vec::new(),
            record: false,
            fuel: FUEL,
            room,
            incomplete: None,
            frames: Vec::new(),
            depth: 0,
            status: 0,
            has_status: false,
            loops: 0,
            breaks: 0,
            is_continue: false,
            returning: false,
            own: None,
            at: None,
            at_blscfg: None,
        }
    }

    /// Uses fuel; false once the run has to stop.
    pub(super) fn burn(&mut self, bytes: usize) -> bool {
        let cost = 1 + bytes as u64 / 16;
        self.fuel = self.fuel.saturating_sub(cost);
        if self.fuel == 0 {
            self.incomplete.get_or_insert(Incomplete::Endless);
        } else if self.env.bytes() > self.room.left() {
            self.stop(Incomplete::TooLarge);
        }
        self.fuel > 0
    }

    pub(super) fn stop(&mut self, why: Incomplete) {
        self.fuel = 0;
        self.incomplete.get_or_insert(why);
    }

    /// Adds an entry to the menu.
    pub(super) fn add_entry(&mut self, entry: RawEntry) {
        if self.hold(entry.bytes()) {
            self.menu.push(Box::new(entry));
        }
    }

    /// Counts memory that is kept; false where the run has to stop for it.
    pub(super) fn hold(&mut self, bytes: usize) -> bool {
        let fits = self.room.take(bytes);
        if !fits {
            self.stop(Incomplete::TooLarge);
        }
        fits
    }

    /// Runs a script to its end, or until the fuel is gone.
    pub(super) fn run(&mut self, code: Code) {
        self.frames.clear();
        (self.loops, self.breaks, self.returning) = (0, 0, false);
        self.push_code(code, true);
        while let Some(frame) = self.frames.pop() {
            if !self.burn(0) {
                self.frames.clear();
                break;
            }
            self.step(frame);
        }
    }

    /// Goes one level deeper; false where GRUB refuses to.
    fn deeper(&mut self) -> bool {
        self.depth += 1;
        self.depth < DEPTH
    }

    fn push_list(&mut self, ast: &Arc<Ast>, list: Slice) -> bool {
        self.push_code(
            Code {
                ast: Arc::clone(ast),
                list,
            },
            false,
        )
    }

    /// Runs a list next; false, and a status that says so, where it would be too deep.
    pub(super) fn push_code(&mut self, code: Code, script: bool) -> bool {
        if !self.deeper() {
            self.status = TOO_DEEP;
            return false;
        }
        self.frames.push(Frame::List {
            next: code.list.start,
            code,
            script,
        });
        true
    }

    /// Runs the condition of an `if`. Where it would be too deep, the status stays what it was.
    fn push_condition(&mut self, ast: &Arc<Ast>, list: Slice) {
        let status = self.status;
        if !self.push_list(ast, list) {
            self.status = status;
        }
    }

    fn step(&mut self, frame: Frame) {
        match frame {
            Frame::List { code, next, script } => self.step_list(code, next, script),
            Frame::If { ast, clause, end } => self.step_if(&ast, clause, end),
            Frame::For {
                ast,
                name,
                body,
                values,
                next,
                cost,
            } => {
                self.step_for(ast, name, body, (values, cost), next);
            }
            Frame::While {
                ast,
                condition,
                body,
                until,
                in_body,
            } => {
                self.step_while(ast, condition, body, until, in_body);
            }
            Frame::Call {
                scope,
                loops,
                invert,
                cost,
            } => {
                self.room.give_back(cost);
                self.returning = false;
                self.loops = loops;
                self.scope = scope;
                self.finish(self.status, invert);
            }
            Frame::Eval { invert } => self.finish(self.status, invert),
            Frame::Leave => {
                self.depth = self.depth.saturating_sub(1);
                self.has_status = true;
            }
        }
    }

    /// Ends a command with this status, which `!` may turn round.
    pub(super) fn finish(&mut self, status: i32, invert: bool) {
        self.status = match (invert, status) {
            (false, status) => status,
            (true, 0) => 1,
            (true, _) => 0,
        };
    }

    fn step_list(&mut self, code: Code, mut next: u32, script: bool) {
        if next == code.list.start && self.breaks > 0 {
            self.status = 0;
        }
        let returning = next > code.list.start && self.returning;
        if returning && script {
            // The rest of the line is gone.
            while next < code.list.end && code.ast.node(next).is_some_and(|node| !node.new_line) {
                next = code.ast.after(next);
            }
        }
        let over = next >= code.list.end || self.breaks > 0 || returning && !script;
        if over {
            self.depth = self.depth.saturating_sub(1);
            return;
        }
        let ast = Arc::clone(&code.ast);
        self.frames.push(Frame::List {
            code,
            next: ast.after(next),
            script,
        });
        if !self.deeper() {
            self.status = TOO_DEEP;
            return;
        }
        self.frames.push(Frame::Leave);
        self.start(ast, next);
    }

    fn start(&mut self, ast: Arc<Ast>, index: u32) {
        let Some(node) = ast.node(index).copied() else {
            return;
        };
        let first = index + 1;
        match node.kind {
            Kind::Command | Kind::Block => {
                let block = ast.block(index);
                self.command(&ast, node.at, block);
            }
            Kind::If => {
                self.frames.push(Frame::If {
                    ast: Arc::clone(&ast),
                    clause: first,
                    end: node.link,
                });
                self.push_condition(&ast, ast.clause(first));
            }
            Kind::For => {
                let (name, words) = ast.for_head(node.at);
                let values = self.expand(&ast, words, false).args;
                let cost = texts(&values);
                self.hold(cost);
                let body = ast.inside(index, first);
                self.loops += 1;
                self.status = 0;
                self.frames.push(Frame::For {
                    ast,
                    name,
                    body,
                    values,
                    next: 0,
                    cost,
                });
            }
            Kind::While | Kind::Until => {
                self.loops += 1;
                let condition = ast.clause(first);
                let body = ast.inside(index, condition.end);
                let list = Arc::clone(&ast);
                self.frames.push(Frame::While {
                    ast,
                    condition,
                    body,
                    until: node.kind == Kind::Until,
                    in_body: false,
                });
                self.push_list(&list, condition);
            }
            Kind::Function => {
                let name = ast.words(node.at).next().unwrap_or_default();
                let code = Code {
                    ast: Arc::clone(&ast),
                    list: ast.inside(index, first),
                };
                let name = ast.text(name).to_vec();
                if self.functions.contains_key(&name) || self.hold(FUNCTION + name.len()) {
                    self.functions.insert(name, code);
                }
            }
            Kind::Text | Kind::Clause | Kind::Else => {}
        }
    }

    fn step_if(&mut self, ast: &Arc<Ast>, clause: u32, end: u32) {
        if self.returning {
            return;
        }
        let body = ast.after(clause);
        if self.status == 0 {
            self.push_list(ast, ast.clause(body));
            return;
        }
        let next = ast.after(body);
        match ast.node(next).filter(|_| next < end).map(|node| node.kind) {
            Some(Kind::Clause) => {
                self.frames.push(Frame::If {
                    ast: Arc::clone(ast),
                    clause: next,
                    end,
                });
                self.push_list(ast, ast.clause(next));
            }
            Some(_) => {
                self.status = 0;
                let otherwise = ast.clause(next);
                if !otherwise.is_empty() {
                    self.push_list(ast, otherwise);
                }
            }
            None => self.status = 0,
        }
    }

    fn step_for(
        &mut self,
        ast: Arc<Ast>,
        name: Slice,
        body: Slice,
        (values, cost): (Vec<Vec<u8>>, usize),
        next: usize,
    ) {
        let value = values.get(next).filter(|_| next == 0 || !self.returning);
        let Some(value) = value else {
            self.room.give_back(cost);
            self.end_loop();
            return;
        };
        if self.is_continue && self.breaks == 1 {
            self.breaks = 0;
        }
        if self.breaks == 0 {
            self.env.set(ast.text(name), value, None);
            let list = Arc::clone(&ast);
            self.frames.push(Frame::For {
                ast,
                name,
                body,
                values,
                next: next + 1,
                cost,
            });
            self.push_list(&list, body);
        } else {
            self.room.give_back(cost);
            self.end_loop();
        }
    }

    fn end_loop(&mut self) {
        self.breaks = self.breaks.saturating_sub(1);
        self.loops = self.loops.saturating_sub(1);
    }

    fn step_while(
        &mut self,
        ast: Arc<Ast>,
        condition: Slice,
        body: Slice,
        until: bool,
        in_body: bool,
    ) {
        let over = if in_body {
            if self.breaks == 1 && self.is_continue {
                self.breaks = 0;
            }
            self.returning || self.breaks > 0
        } else {
            self.returning || (self.status == 0) == until
        };
        if over {
            self.end_loop();
            return;
        }
        let list = if in_body { condition } else { body };
        let tree = Arc::clone(&ast);
        self.frames.push(Frame::While {
            ast,
            condition,
            body,
            until,
            in_body: !in_body,
        });
        self.push_list(&tree, list);
    }

    /// Calls a function.
    pub(super) fn call(&mut self, code: Code, args: Vec<Vec<u8>>, invert: bool) {
        let cost = texts(&args);
        self.hold(cost);
        let scope = self.scope.replace(args);
        self.frames.push(Frame::Call {
            scope,
            loops: self.loops,
            invert,
            cost,
        });
        self.loops = 0;
        self.frames.push(Frame::List {
            next: code.list.start,
            code,
            script: false,
        });
    }
}
