use grub_config_parser::cmdline::{CommandLine, Edit, Effect, edit_line, split_bytes};

use super::{done, edits, only_an_argument, subsequence};

/// A kernel command line.
pub fn cmdline(data: &[u8]) {
    for arg in split_bytes(data) {
        assert!(subsequence(arg.raw, data));
        assert!(!arg.raw.is_empty());
    }
    let text = String::from_utf8_lossy(data);
    let line = CommandLine::parse(&text);
    assert_eq!(
        CommandLine::parse(&line.to_string()),
        line,
        "printed and read again"
    );
    let explained = line.explain();
    assert_eq!(explained.len(), line.args().len());
    for one in &explained {
        if let Effect::Overridden { by } = one.effect {
            assert!(line.args()[by].same_name(one.arg.name()));
        }
    }
    let (set, remove) = edits(&line);
    for arg in &set {
        check(&text, &line, &Edit::Set(arg));
    }
    for pattern in &remove {
        check(&text, &line, &Edit::Remove(pattern));
    }
}

fn check(text: &str, line: &CommandLine, edit: &Edit<'_>) {
    let mut wanted = line.clone();
    edit.apply(&mut wanted);
    match edit_line(text, edit) {
        Ok(None) => assert_eq!(&wanted, line),
        Err(_) => assert!(text.contains('"')),
        Ok(Some(edited)) => {
            let read = CommandLine::parse(&edited);
            assert_eq!(read, wanted, "{edited:?}");
            assert!(done(&read, edit), "{edited:?}");
            only_an_argument(text.as_bytes(), edited.as_bytes(), edit);
        }
    }
}
