use grub_config_parser::cmdline::CommandLine;
use grub_config_parser::defaults::{Document, File, evaluate};

use super::{edits, subsequence};

/// A shell file.
pub fn defaults(data: &[u8]) {
    let doc = Document::parse(data);
    assert_eq!(doc.to_bytes(), data);
    let mut end = 0;
    for token in doc.tokens() {
        assert_eq!(token.span.start, end, "a gap between tokens");
        end = token.span.end;
    }
    assert_eq!(end, data.len());
    let file = File {
        name: "f",
        doc: &doc,
    };
    let lines = 1 + data.iter().filter(|byte| **byte == b'\n').count();
    let vars = evaluate(&[file, file]).vars;
    for variable in vars.values() {
        let mut end = 0;
        for piece in &variable.pieces {
            assert_eq!(piece.range.start, end);
            end = piece.range.end;
            if let Some(origin) = &piece.origin {
                assert!((1..=lines).contains(&origin.line), "{origin}");
            }
        }
        assert!(
            end == 0
                || variable
                    .value
                    .as_ref()
                    .is_some_and(|value| value.len() == end)
        );
    }
    let name = "GRUB_CMDLINE_LINUX";
    let value = vars.get(name).and_then(|variable| variable.value.clone());
    let (_, remove) = edits(&CommandLine::parse(&value.unwrap_or_default()));
    for pattern in &remove {
        let Ok(edited) = doc.remove_words(name, pattern) else {
            continue;
        };
        assert!(subsequence(&edited.to_bytes(), data));
        let again = edited.remove_words(name, pattern).unwrap();
        assert_eq!(
            again.to_bytes(),
            edited.to_bytes(),
            "{pattern} was still there"
        );
    }
}
