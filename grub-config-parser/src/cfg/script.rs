//! A parsed script.

use alloc::borrow::Cow;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::ast::{Ast, Kind, Part, Slice, offset};
use super::error::SyntaxError;
use super::parse::{Parsed, parse};
use super::table::Table;

/// A `grub.cfg` script that GRUB accepts.
#[derive(Debug, Clone)]
pub struct Script {
    pub(super) ast: Arc<Ast>,
    /// The text as it was given, where it is not the tree's.
    original: Option<Vec<u8>>,
    cuts: Arc<Cuts>,
}

/// Where the tree's source differs from the original: places in it and how many bytes were left out
/// before.
type Cuts = Table<(u32, u32)>;

impl Script {
    /// Parses a script. Accepts what `grub-script-check` accepts, and a script without commands.
    ///
    /// # Errors
    /// The first thing that GRUB's parser does not take, with its line. Nesting is bounded as GRUB
    /// bounds it.
    pub fn parse(source: &[u8]) -> Result<Self, SyntaxError> {
        let (checked, cuts) = without_nul_rests(source);
        let mut parsed = parse(&checked)?;
        // GRUB's reader drops carriage returns and lines that start with `#`, grub-script-check does
        // not. Where that makes a difference, the tree is what GRUB makes of it.
        if parsed.comment_in_word || checked.contains(&b'\r') {
            // Not both trees at a time.
            drop(parsed);
            let (read, cuts) = as_grub_reads(source);
            if let Ok(parsed) = parse(&read) {
                return Ok(Self::new(parsed, read, source, cuts));
            }
            parsed = parse(&checked)?;
        }
        Ok(Self::new(parsed, checked.into_owned(), source, cuts))
    }

    fn new(parsed: Parsed, read: Vec<u8>, original: &[u8], cuts: Cuts) -> Self {
        let mut ast = parsed.ast;
        let original = (read != original).then(|| original.to_vec());
        ast.source = read;
        Self {
            ast: Arc::new(ast),
            original,
            cuts: Arc::new(cuts),
        }
    }

    /// The text as it was given.
    pub fn source(&self) -> &[u8] {
        self.original.as_deref().unwrap_or(&self.ast.source)
    }

    /// True if the script has at least one command; `grub-script-check` refuses one that has none.
    pub fn has_commands(&self) -> bool {
        let ast: &Ast = &self.ast;
        let mut next = 0;
        core::iter::from_fn(|| {
            let node = ast.node(next)?;
            next = ast.after(next);
            Some(node.kind)
        })
        .any(|kind| kind != Kind::Function)
    }

    /// The place in the original of a place in the tree's source.
    pub(super) fn original_offset(&self, at: usize) -> usize {
        let cuts = self
            .cuts
            .partition_point(|(place, _)| *place as usize <= at);
        let cut = cuts.checked_sub(1).and_then(|index| self.cuts.get(index));
        at + cut.map_or(0, |(_, bytes)| *bytes as usize)
    }

    /// Every simple command in the script, whether it would run or not: its first two words as written.
    pub(super) fn commands(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let ast: &Ast = &self.ast;
        let commands = ast.nodes.iter();
        let commands = commands.filter(|node| matches!(node.kind, Kind::Command | Kind::Block));
        commands.filter_map(|node| {
            let mut words = ast.words(node.at);
            let first = words.next()?;
            Some((
                word_text(ast, first),
                words.next().map(|word| word_text(ast, word)),
            ))
        })
    }

    /// About how many bytes the script takes.
    pub(super) fn bytes(&self) -> usize {
        self.ast.bytes() + self.original.as_ref().map_or(0, Vec::len) + self.cuts.bytes()
    }
}

fn word_text(ast: &Ast, word: Slice) -> &[u8] {
    match ast.only_part(word) {
        Some(Part::Text(slice) | Part::Single(slice) | Part::Double(slice)) => ast.text(slice),
        _ => ast.text(word),
    }
}

/// Parses text that a running script made.
pub(super) fn parse_text(text: Vec<u8>) -> Option<Arc<Ast>> {
    let mut ast = parse(&text).ok()?.ast;
    ast.source = text;
    Some(Arc::new(ast))
}

/// Drops what follows a NUL on its line: C strings end there.
fn without_nul_rests(source: &[u8]) -> (Cow<'_, [u8]>, Cuts) {
    if !source.contains(&0) {
        return (Cow::Borrowed(source), Cuts::default());
    }
    let mut cutter = Cutter::new(source);
    for line in source.split_inclusive(|byte| *byte == b'\n') {
        cutter.line(line);
    }
    (Cow::Owned(cutter.text), cutter.cuts)
}

fn as_grub_reads(source: &[u8]) -> (Vec<u8>, Cuts) {
    let mut cutter = Cutter::new(source);
    for line in source.split_inclusive(|byte| *byte == b'\n') {
        let first = line.iter().position(|byte| *byte != b'\r');
        if first.and_then(|first| line.get(first)) == Some(&b'#') {
            cutter.drop(line.len());
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\r') {
            let (head, tail) = rest.split_at(at);
            if head.contains(&0) {
                break;
            }
            cutter.keep(head);
            cutter.drop(1);
            rest = tail.get(1..).unwrap_or(&[]);
        }
        cutter.line(rest);
    }
    (cutter.text, cutter.cuts)
}

struct Cutter {
    text: Vec<u8>,
    cuts: Cuts,
    dropped: usize,
}

impl Cutter {
    fn new(source: &[u8]) -> Self {
        Self {
            text: Vec::with_capacity(source.len()),
            cuts: Cuts::default(),
            dropped: 0,
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
    }

    fn drop(&mut self, bytes: usize) {
        self.dropped += bytes;
        let cut = (offset(self.text.len()), offset(self.dropped));
        match self.cuts.last_mut() {
            Some(last) if last.0 == cut.0 => *last = cut,
            _ => self.cuts.push(cut),
        }
    }

    /// Keeps a line up to a NUL, and its newline.
    fn line(&mut self, line: &[u8]) {
        let Some(nul) = line.iter().position(|byte| *byte == 0) else {
            return self.keep(line);
        };
        let (head, rest) = line.split_at(nul);
        self.keep(head);
        let newline = usize::from(rest.last() == Some(&b'\n'));
        self.drop(rest.len() - newline);
        // Also the last line counts as one, though nothing is left of it.
        self.keep(b"\n");
    }
}
