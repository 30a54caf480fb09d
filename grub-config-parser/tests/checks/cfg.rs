use grub_config_parser::cfg::{Context, Script, tokens};
use grub_config_parser::effective::{Sources, Tracer};

/// A `grub.cfg`.
pub fn cfg(data: &[u8]) {
    let mut end = 0;
    for token in tokens(data) {
        assert!(token.span.start >= end && token.span.end <= data.len());
        end = token.span.end;
    }
    let lines = 1 + data.iter().filter(|byte| **byte == b'\n').count();
    let script = match Script::parse(data) {
        Ok(script) => script,
        Err(error) => {
            assert!((1..=lines + 1).contains(&error.line), "{error:?}");
            return;
        }
    };
    assert_eq!(script.source(), data);
    let context = Context::with_env([("saved_entry".to_string(), "0".to_string())].into());
    let menu = script.menu(&context);
    assert_eq!(menu.default.is_none(), menu.entries.is_empty());
    let tracer = Tracer::new(&Sources {
        grub_cfg: Some(("c", &script)),
        ..Sources::default()
    });
    for (index, entry) in menu.entries.iter().enumerate().take(20) {
        let arguments = tracer.menu_entry(entry);
        let args: Vec<_> = arguments
            .iter()
            .map(|argument| argument.arg.clone())
            .collect();
        assert_eq!(args, entry.cmdline.args());
        for origin in arguments.iter().flat_map(|argument| &argument.origins) {
            assert!((1..=lines).contains(&origin.line), "{origin}");
        }
        let Some(line) = &entry.linux_line else {
            continue;
        };
        assert!((1..=lines).contains(&line.line));
        let (head, rest) = data.split_at(line.args_span.start);
        let tail = &rest[line.args_span.len()..];
        // Other arguments in the same place are the entry's arguments then.
        let edited = [head, b" gdr.probe=1", tail].concat();
        let Ok(edited) = Script::parse(&edited) else {
            panic!("the place of the arguments is no place for arguments");
        };
        let edited = edited.menu(&context);
        assert_eq!(edited.entries.len(), menu.entries.len());
        assert_eq!(edited.entries[index].raw, "gdr.probe=1");
    }
}
