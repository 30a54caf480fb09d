//! `menuentry` and `submenu`: options as GRUB's `lib/arg.c` reads them, then the entry.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ast::{Ast, Block};
use super::machine::{Code, Machine, RawEntry};

/// `GRUB_ERR_BAD_ARGUMENT`
const BAD_ARGUMENT: i32 = 18;
/// `GRUB_ERR_MENU`: an entry without a title.
const NO_TITLE: i32 = 27;

/// Fuel for one entry: each is kept, and its body will run.
const ENTRY_COST: usize = 50;

#[derive(Default)]
struct Options {
    classes: Vec<Vec<u8>>,
    users: Option<Vec<u8>>,
    source: Option<Vec<u8>>,
    id: Option<Vec<u8>>,
    unrestricted: bool,
}

impl Machine<'_> {
    pub(super) fn menu_entry(
        &mut self,
        ast: &Arc<Ast>,
        submenu: bool,
        argv: &[Vec<u8>],
        block: Option<Block>,
    ) -> i32 {
        // The block is the last argument, as text; an option can swallow it like any other.
        let mut all = argv.to_vec();
        if let Some(block) = block {
            let text = ast.text(block.span);
            all.push([b"{", text, b"}"].concat());
        }
        self.burn(ENTRY_COST * 16 + all.iter().map(Vec::len).sum::<usize>());
        let (options, mut args) = match read_options(&all) {
            Ok(read) => read,
            Err(status) => return status,
        };
        let own = all.len().checked_sub(1);
        let body = match (block, &options.source) {
            _ if args.is_empty() => return BAD_ARGUMENT,
            (Some(_), Some(_)) | (None, None) => return BAD_ARGUMENT,
            (None, Some(source)) => self.parsed(source),
            (Some(block), None) => {
                let Some((last, index)) = args.pop() else {
                    return BAD_ARGUMENT;
                };
                if Some(index) == own {
                    Some(Code {
                        ast: Arc::clone(ast),
                        list: block.list,
                    })
                } else {
                    self.parsed(last.get(1..last.len().saturating_sub(1)).unwrap_or(&[]))
                }
            }
        };
        let mut args: Vec<Vec<u8>> = args.into_iter().map(|(arg, _)| arg).collect();
        args.shrink_to_fit();
        let Some(title) = args.first().cloned() else {
            return NO_TITLE;
        };
        self.add_entry(RawEntry {
            id: options.id.unwrap_or_else(|| title.clone()),
            title,
            classes: options.classes,
            users: options.users,
            unrestricted: options.unrestricted,
            args,
            span: block.map(|block| block.span),
            body,
            submenu,
            bls: None,
        });
        0
    }

    /// A body that is text of its own.
    fn parsed(&mut self, text: &[u8]) -> Option<Code> {
        let body = parsed(text)?;
        self.hold(body.ast.bytes()).then_some(body)
    }

    /// `blscfg`: an entry for each file. Its variables are read now, those in the script when the
    /// entry is chosen.
    pub(super) fn blscfg(&mut self) -> i32 {
        if self.at_blscfg.is_none() {
            self.burn(self.env.bytes());
            // As it is, and as the menu tells it.
            if self.hold(2 * self.env.bytes()) {
                self.at_blscfg = Some(self.env.clone());
            }
        }
        let Some(bls) = self.files.bls else { return 0 };
        let env = self.env.texts();
        for draft in crate::bls::drafts(&bls.files, bls.order, &env) {
            let body = parsed(draft.script.as_bytes());
            let kept = body.as_ref().map_or(0, |body| body.ast.bytes());
            if !self.burn(ENTRY_COST * 16 + draft.script.len()) || !self.hold(kept) {
                break;
            }
            let bytes = |text: String| text.into_bytes();
            let args: Vec<Vec<u8>> = draft.args.into_iter().map(bytes).collect();
            self.add_entry(RawEntry {
                title: args.first().cloned().unwrap_or_default(),
                id: draft.id.into_bytes(),
                classes: draft.classes.into_iter().map(bytes).collect(),
                // Without `grub_users` nobody is asked.
                unrestricted: draft.users.is_none(),
                users: draft.users.map(bytes),
                args,
                span: None,
                body,
                submenu: false,
                bls: Some(draft.file),
            });
        }
        0
    }
}

fn parsed(text: &[u8]) -> Option<Code> {
    let ast = super::script::parse_text(text.to_vec())?;
    Some(Code {
        list: ast.root(),
        ast,
    })
}

/// Arguments, each with its place among all that were given.
type Numbered = Vec<(Vec<u8>, usize)>;

/// Splits options from arguments, each with its number. The error is the status where GRUB stops
/// there.
fn read_options(argv: &[Vec<u8>]) -> Result<(Options, Numbered), i32> {
    let mut options = Options::default();
    let mut args = Numbered::new();
    let mut at = 0;
    while let Some(arg) = argv.get(at) {
        let index = at;
        at += 1;
        let Some(long) = arg.strip_prefix(b"--") else {
            // `-h` and `-u` show help; other dashes belong to the title.
            let help = arg.len() > 1
                && arg.first() == Some(&b'-')
                && arg
                    .iter()
                    .skip(1)
                    .all(|byte| matches!(byte, b'h' | b'u' | 1..=4));
            if help {
                return Err(0);
            }
            args.push((arg.clone(), index));
            continue;
        };
        if long.is_empty() {
            args.extend(
                argv.iter()
                    .cloned()
                    .enumerate()
                    .skip(at)
                    .map(|(i, arg)| (arg, i)),
            );
            break;
        }
        let (name, given) = match long.iter().position(|byte| *byte == b'=') {
            Some(equals) => {
                let (name, value) = long.split_at(equals);
                (name, value.get(1..).map(<[u8]>::to_vec))
            }
            None => (long, None),
        };
        match name {
            b"class" | b"users" | b"hotkey" | b"source" | b"id" => {
                let next = argv.get(at).filter(|next| next.first() != Some(&b'-'));
                let value = match (given, next) {
                    (Some(value), _) => value,
                    (None, Some(next)) => {
                        at += 1;
                        next.clone()
                    }
                    (None, None) => return Err(BAD_ARGUMENT),
                };
                match name {
                    b"class" => options.classes.push(value),
                    b"users" => options.users = Some(value),
                    b"source" => options.source = Some(value),
                    b"id" => options.id = Some(value),
                    _ => {}
                }
            }
            b"unrestricted" if given.is_none() => options.unrestricted = true,
            // These print something and end the command, which counts as done.
            b"help" | b"usage" => return Err(0),
            b"unrestricted" => return Err(BAD_ARGUMENT),
            _ => args.push((arg.clone(), index)),
        }
    }
    Ok((options, args))
}
