//! Real files against the right readings that their index lists.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests read files and panic"
)]

mod common;

use grub_config_parser::bls::{Order, Snippet, menu};
use grub_config_parser::cfg::{Context, Script};
use grub_config_parser::defaults::{Document, File, evaluate};
use grub_config_parser::effective::{Sources, Tracer};
use grub_config_parser::grubenv::EnvBlock;
use grub_config_parser::kernel_cmdline::KernelCmdline;

/// Each file of a kind: its name, its bytes and its right reading.
fn listed(kind: &str) -> Vec<(String, Vec<u8>, String)> {
    let Some(dir) = common::corpus("") else {
        return Vec::new();
    };
    let index = std::fs::read_to_string(dir.join("INDEX.md")).unwrap();
    let mut all = Vec::new();
    for line in index.lines() {
        let Some(rest) = line.strip_prefix(&format!("- `{kind}/")) else {
            continue;
        };
        let (name, rest) = rest.split_once('`').unwrap();
        let (_, reading) = rest.split_once("right reading: ").unwrap();
        let bytes = std::fs::read(dir.join(kind).join(name)).unwrap();
        all.push((name.to_string(), bytes, reading.to_string()));
    }
    let files = common::corpus_files(kind).len();
    assert_eq!(all.len(), files, "every {kind} file is in the index");
    all
}

/// A number behind `key=`.
fn number(reading: &str, key: &str) -> usize {
    let (_, rest) = reading.split_once(&format!("{key}=")).unwrap();
    let digits = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..digits].parse().unwrap()
}

/// A list like `['a', "b"]` behind `key=`.
fn list(reading: &str, key: &str) -> Vec<String> {
    let (_, rest) = reading.split_once(&format!("{key}=[")).unwrap();
    let mut items = Vec::new();
    let mut rest = rest;
    while let Some(quote) = rest.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let (item, behind) = rest[1..].split_once(quote).unwrap();
        items.push(item.to_string());
        rest = behind.strip_prefix(", ").unwrap_or(behind);
    }
    items
}

#[test]
fn entries_have_the_listed_keys_and_options() {
    for (name, bytes, reading) in listed("bls") {
        let file = Snippet::parse(&format!("{name}.conf"), &bytes);
        let keys: Vec<String> = file.keys().map(|(key, _)| key.to_string()).collect();
        assert_eq!(keys, list(&reading, "keys"), "{name}");
        let lines = number(&reading, "options-lines");
        assert_eq!(file.value("options").is_some(), lines > 0, "{name}");
        assert_eq!(
            file.ignored_options().len(),
            lines.saturating_sub(1),
            "{name}"
        );
        let (_, options) = reading.split_once(" options=").unwrap();
        let options = options.trim_matches(['\'', '"']);
        assert!(
            file.value("options").unwrap_or("").trim() == options.trim(),
            "{name}"
        );
    }
}

#[test]
fn blocks_have_the_listed_variables() {
    for (name, bytes, reading) in listed("grubenv") {
        assert_eq!(bytes.len(), number(&reading, "len"), "{name}");
        // What the index calls corrupt has another length or padding; GRUB reads it all the same.
        let block = EnvBlock::parse(&bytes).unwrap();
        let vars: Vec<String> = block
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(vars, list(&reading, "vars"), "{name}");
    }
}

#[test]
fn kernel_command_line_files_have_the_listed_words() {
    for (name, bytes, reading) in listed("kernel-cmdline") {
        if !reading.starts_with("lines=") {
            continue;
        }
        let file = KernelCmdline::parse(&bytes).unwrap();
        assert_eq!(
            file.comments().len(),
            number(&reading, "comments"),
            "{name}"
        );
        let text = String::from_utf8(bytes).unwrap();
        let words: Vec<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .flat_map(str::split_ascii_whitespace)
            .collect();
        assert_eq!(words.len(), number(&reading, "tokens"), "{name}");
        // The reader of kernel-install knows no comments.
        let all: Vec<&str> = text.split_ascii_whitespace().collect();
        assert_eq!(file.options(), all.join(" "), "{name}");
        let (_, start) = reading.split_once(": ").unwrap();
        assert!(words.join(" ").starts_with(start.trim()), "{name}");
    }
}

#[test]
fn scripts_have_the_listed_entries() {
    for (name, bytes, reading) in listed("grub-cfg") {
        let Ok(script) = Script::parse(&bytes) else {
            // Templates whose braces are still to be filled.
            assert!(String::from_utf8_lossy(&bytes).contains("{{"), "{name}");
            continue;
        };
        let menu = script.menu(&Context::default());
        assert_eq!(menu.uses_blscfg, reading.contains("blscfg=yes"), "{name}");
        // The index counts lines of text; what stands in a function or a branch makes no entry here.
        assert!(
            menu.entries.len() <= number(&reading, "menuentry"),
            "{name}"
        );
        let (_, first) = reading.split_once("first linux: ").unwrap();
        let first: Vec<&str> = first.split_ascii_whitespace().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let tracer = Tracer::new(&Sources {
            grub_cfg: Some((&name, &script)),
            ..Sources::default()
        });
        for (index, entry) in menu.entries.iter().enumerate() {
            let Some(own) = &entry.linux_line else {
                continue;
            };
            let words: Vec<&str> = lines[own.line - 1].split_ascii_whitespace().collect();
            assert!(words[0].starts_with("linux"), "{name}: {words:?}");
            if index == 0 && menu.entries.len() == number(&reading, "menuentry") {
                assert_eq!(words[..first.len() - 1], first[..first.len() - 1], "{name}");
            }
            for argument in tracer.menu_entry(entry) {
                assert_eq!(argument.origins[0].line, own.line, "{name}: {argument}");
            }
        }
    }
}

#[test]
fn shell_files_say_where_their_words_are_written() {
    for (name, bytes, _) in listed("grub-default") {
        let doc = Document::parse(&bytes);
        let file = File {
            name: &name,
            doc: &doc,
        };
        let text = String::from_utf8_lossy(&bytes).replace('\r', "");
        let lines: Vec<&str> = text.split('\n').collect();
        for (variable, own) in evaluate(&[file]).vars {
            let value = own.value.unwrap_or_default();
            for piece in own.pieces {
                let Some(origin) = piece.origin else { continue };
                assert!(
                    lines[origin.line - 1].contains(origin.variable.as_deref().unwrap()),
                    "{name}: {variable}"
                );
                let first = value[piece.range].split_ascii_whitespace().next();
                // A word stands on its line as it is, unless quotes or escapes are in it or lines are joined.
                if let Some(word) =
                    first.filter(|word| word.chars().all(|c| c.is_ascii_alphanumeric()))
                {
                    let rest = lines[origin.line - 1..].join("\n");
                    assert!(rest.contains(word), "{name}: {word} is not at {origin}");
                }
            }
        }
    }
}

#[test]
fn every_entry_can_be_put_in_every_order() {
    let files: Vec<Snippet> = listed("bls")
        .iter()
        .map(|(name, bytes, _)| Snippet::parse(name, bytes))
        .collect();
    for order in [Order::FileVerCmp, Order::Rpm, Order::RpmVersion] {
        let entries = menu(&files, order, &[].into());
        let linux = files
            .iter()
            .filter(|file| file.name().ends_with(".conf") && file.value("linux").is_some());
        assert_eq!(entries.len(), linux.count(), "{order:?}");
    }
}

/// A cloud image's menu, its defaults and the drop-in that such images bring. Of another image's drop-in,
/// with an argument more, nothing is said: that menu was not made from it.
#[test]
fn a_cloud_image_leads_from_the_menu_to_its_drop_in() {
    let of = |kind: &str, name: &str| {
        let all = listed(kind);
        all.into_iter().find(|(own, ..)| own.contains(name))
    };
    let (Some(grub), Some(own), Some(other), Some(menu)) = (
        of("grub-default", "012-ubuntu-2204"),
        of("grub-default", "045-digitalocean-50-cloudimg-settings"),
        of("grub-default", "052-isucon12q-50-cloudimg-settings"),
        of("grub-cfg", "05-ubuntu-2204"),
    ) else {
        return;
    };
    let script = Script::parse(&menu.1).unwrap();
    let menu = script.menu(&Context::default());
    let line = |wanted: &str, text: &[u8]| {
        let text = String::from_utf8_lossy(text);
        1 + text
            .lines()
            .position(|line| line.trim_start().starts_with(wanted))
            .unwrap()
    };
    let linux = line("linux", script.source());
    for (drop_in, led) in [(&own, true), (&other, false)] {
        let (grub, cloud) = (Document::parse(&grub.1), Document::parse(&drop_in.1));
        let defaults = evaluate(&[
            File {
                name: "grub",
                doc: &grub,
            },
            File {
                name: "50.cfg",
                doc: &cloud,
            },
        ]);
        assert_eq!(defaults.aborts, None);
        let tracer = Tracer::new(&Sources {
            grub_cfg: Some(("grub.cfg", &script)),
            grubenv: None,
            defaults: Some(&defaults),
        });
        let arguments = tracer.menu_entry(&menu.entries[0]);
        let shown: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let generator = format!("grub.cfg:{linux} < /etc/grub.d/10_linux");
        let from = if led {
            let at = line("GRUB_CMDLINE_LINUX_DEFAULT=", &drop_in.1);
            format!("grub.cfg:{linux} < 50.cfg:{at} (GRUB_CMDLINE_LINUX_DEFAULT)")
        } else {
            generator.clone()
        };
        let wanted = [
            format!("root=LABEL=cloudimg-rootfs  {generator}"),
            format!("ro  {generator}"),
            format!("console=tty1  {from}"),
            format!("console=ttyS0  {from}"),
        ];
        assert_eq!(shown, wanted);
    }
}

/// An EL 8 machine: entries, environment block, menu and defaults are all there.
#[test]
fn an_el8_entry_leads_through_kernelopts_to_the_defaults() {
    let of = |kind: &str, name: &str| {
        let all = listed(kind);
        all.into_iter().find(|(own, ..)| own.contains(name))
    };
    let (Some(grub), Some(env), Some(menu), Some(entry)) = (
        of("grub-default", "042-demo-project"),
        of("grubenv", "08-demo-project"),
        of("grub-cfg", "32-demo-project"),
        of("bls", "28-demo-project"),
    ) else {
        return;
    };
    let doc = Document::parse(&grub.1);
    let defaults = evaluate(&[File {
        name: "grub",
        doc: &doc,
    }]);
    let script = Script::parse(&menu.1).unwrap();
    let file = Snippet::parse("entry.conf", &entry.1);
    let options = file.line("options").unwrap();
    let set = 1 + String::from_utf8_lossy(&menu.1)
        .lines()
        .position(|line| line.trim().starts_with("set kernelopts="))
        .unwrap();
    // With the block, and without it: then the menu's own setting counts.
    for (block, at) in [
        (EnvBlock::parse(&env.1).unwrap(), "env:3".to_string()),
        (EnvBlock::empty(), format!("cfg:{set}")),
    ] {
        let tracer = Tracer::new(&Sources {
            grub_cfg: Some(("cfg", &script)),
            grubenv: Some(("env", &block)),
            defaults: Some(&defaults),
        });
        let context = Context {
            env: block.iter().collect(),
            env_present: true,
            existing: vec!["/grubenv".to_string()],
            ..Context::default()
        };
        let variables = tracer.bls_variables(&script.menu(&context));
        let entries = menu_of(&file, &variables.values());
        let arguments = tracer.bls_entry(&entries[0], &file, "entry.conf", &variables);
        let shown: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let way = format!("entry.conf:{options} < {at} (kernelopts)");
        let generator = if at.starts_with("cfg") {
            " < /etc/grub.d/10_linux"
        } else {
            ""
        };
        let copied = |arg: &str| format!("{arg}  {way} < grub:6 (GRUB_CMDLINE_LINUX)");
        let wanted = [
            format!("root=/dev/mapper/cl-root  {way}{generator}"),
            format!("ro  {way}{generator}"),
            copied("crashkernel=auto"),
            copied("resume=/dev/mapper/cl-swap"),
            copied("rd.lvm.lv=cl/root"),
            copied("rd.lvm.lv=cl/swap"),
            copied("rhgb"),
            copied("quiet"),
        ];
        assert_eq!(shown, wanted);
    }
}

fn menu_of(
    file: &Snippet,
    env: &std::collections::BTreeMap<String, String>,
) -> Vec<grub_config_parser::bls::Entry> {
    menu(std::slice::from_ref(file), Order::RpmVersion, env)
}
