use std::collections::BTreeMap;

use grub_config_parser::bls::{Order, Snippet, menu};
use grub_config_parser::cmdline::Edit;
use grub_config_parser::effective::{Sources, Tracer, Variables};

use super::{edits, only_an_argument};

/// An entry file.
pub fn bls(data: &[u8]) {
    let file = Snippet::parse("a-1.conf", data);
    assert_eq!(file.to_bytes(), data);
    let env: BTreeMap<String, String> = [
        ("kernelopts", "root=/dev/sda1 ro"),
        ("tuned_params", "iommu=off"),
    ]
    .map(|(name, value)| (name.to_string(), value.to_string()))
    .into();
    let tracer = Tracer::new(&Sources::default());
    for order in [Order::FileVerCmp, Order::Rpm, Order::RpmVersion] {
        for entry in menu(std::slice::from_ref(&file), order, &env) {
            let arguments = tracer.bls_entry(&entry, &file, "a-1.conf", &Variables::default());
            let args: Vec<_> = arguments
                .iter()
                .map(|argument| argument.arg.clone())
                .collect();
            assert_eq!(args, entry.cmdline.args());
            for argument in arguments {
                for origin in argument.origins {
                    assert!(
                        file.line("options") == Some(origin.line)
                            || file.line("linux") == Some(origin.line)
                    );
                }
            }
        }
    }
    let line = grub_config_parser::cmdline::CommandLine::parse(file.value("options").unwrap_or(""));
    let (set, remove) = edits(&line);
    for arg in &set {
        check(&file, &env, &Edit::Set(arg));
    }
    for pattern in &remove {
        check(&file, &env, &Edit::Remove(pattern));
    }
}

fn check(file: &Snippet, env: &BTreeMap<String, String>, edit: &Edit<'_>) {
    let Ok(Some(edited)) = file.edit_options(edit) else {
        return;
    };
    let (before, after) = (file.to_bytes(), edited.to_bytes());
    match (file.line("options"), edit) {
        (Some(_), _) => only_an_argument(&before, &after, edit),
        (None, Edit::Set(arg)) => {
            let line = format!("options {}\n", arg.raw());
            let added = (0..=before.len()).any(|at| {
                let (head, tail) = before.split_at(at);
                [head, line.as_bytes(), tail].concat() == after
                    || [head, b"\n", line.as_bytes(), tail].concat() == after
            });
            assert!(added, "{after:?}");
        }
        (None, Edit::Remove(_)) => panic!("nothing to remove"),
    }
    // What the kernel gets is what was asked for, whatever variables bring in.
    let args = |file: &Snippet| {
        let entries = menu(std::slice::from_ref(file), Order::Rpm, env);
        entries.first().map(|entry| entry.cmdline.clone())
    };
    // A script that `initrd` breaks boots nothing, whatever its options are.
    let whole = file.value("initrd").is_none();
    if let (Edit::Set(arg), Some(line), true) = (edit, args(&edited), whole) {
        assert!(line.contains_exact(arg), "{line}");
    }
    let keys = |file: &Snippet| {
        let all = file.keys().filter(|(key, _)| *key != "options");
        all.map(|(key, value)| (key.to_string(), value.to_string()))
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(file), keys(&edited));
}
