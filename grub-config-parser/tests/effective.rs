//! Where arguments come from. In the generated files every word names the place where it is written, so
//! what the parser says of it can be checked against the word itself.
#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests index and panic"
)]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write;

use grub_config_parser::bls::{self, Order, Snippet};
use grub_config_parser::cfg::{Context, Script};
use grub_config_parser::defaults::{Document, File, evaluate};
use grub_config_parser::effective::{Argument, Sources, Tracer, Variables};
use grub_config_parser::grubenv::EnvBlock;
use proptest::prelude::*;

fn shown(arguments: &[Argument]) -> Vec<String> {
    arguments.iter().map(ToString::to_string).collect()
}

/// `w<file>x<line>` and what follows: the place where this word is written.
fn place(word: &str) -> Option<(usize, usize)> {
    let (file, line) = word.strip_prefix('w')?.split_once('x')?;
    Some((file.parse().ok()?, line.split('y').next()?.parse().ok()?))
}

const NAMES: [&str; 4] = [
    "GRUB_CMDLINE_LINUX",
    "GRUB_CMDLINE_LINUX_DEFAULT",
    "GRUB_A",
    "GRUB_B",
];

/// One line of a shell file: an assignment of words and references, or a construct around one.
#[derive(Debug, Clone)]
struct Line {
    variable: usize,
    parts: Vec<Option<usize>>,
    form: usize,
}

fn line() -> impl Strategy<Value = Line> {
    let part = prop_oneof![2 => Just(None), 2 => (0..NAMES.len()).prop_map(Some)];
    (0..NAMES.len(), prop::collection::vec(part, 0..5), 0..8usize).prop_map(
        |(variable, parts, form)| Line {
            variable,
            parts,
            form,
        },
    )
}

fn text_of(file: usize, lines: &[Line]) -> String {
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let mut count = 0;
        let mut value = String::new();
        for part in &line.parts {
            match part {
                Some(name) if line.form == 1 => write!(value, "${{{}:-}} ", NAMES[*name]),
                Some(name) => write!(value, "${} ", NAMES[*name]),
                None => {
                    count += 1;
                    write!(value, "w{file}x{}y{count} ", number + 1)
                }
            }
            .unwrap();
        }
        let name = NAMES[line.variable];
        match line.form {
            2 => writeln!(text, "export {name}=\"{value}\""),
            3 => writeln!(text, "if true; then {name}=\"{value}\"; fi"),
            4 => writeln!(text, "f() {{ {name}=\"{value}\"; }}; f"),
            5 => writeln!(text, "( {name}=lost )"),
            6 => writeln!(text, "{name}=\"${{{name}:+${name} }}{value}\""),
            _ => writeln!(text, "{name}=\"{value}\""),
        }
        .unwrap();
    }
    text
}

proptest! {
    #![proptest_config(common::cases(400))]

    #[test]
    fn every_word_of_a_shell_value_comes_from_where_it_is_written(
        files in prop::collection::vec(prop::collection::vec(line(), 0..7), 1..4),
    ) {
        let documents: Vec<Document> = files
            .iter()
            .enumerate()
            .map(|(number, lines)| Document::parse(text_of(number, lines).as_bytes()))
            .collect();
        let names: Vec<String> = (0..documents.len()).map(|number| number.to_string()).collect();
        let given: Vec<File<'_>> =
            names.iter().zip(&documents).map(|(name, doc)| File { name, doc }).collect();
        for (name, variable) in evaluate(&given).vars {
            let value = variable.value.unwrap();
            let mut end = 0;
            for piece in &variable.pieces {
                prop_assert_eq!(piece.range.start, end, "no gap in {}", &name);
                end = piece.range.end;
                let origin = piece.origin.as_ref().unwrap();
                for word in value[piece.range.clone()].split_whitespace() {
                    let (file, line) = place(word).unwrap();
                    prop_assert_eq!((&origin.file, origin.line), (&names[file], line), "{}", word);
                }
            }
            prop_assert_eq!(end, value.len());
        }
    }

    #[test]
    fn every_argument_that_mkconfig_has_copied_leads_to_the_shell_file(
        files in prop::collection::vec(prop::collection::vec(line(), 0..7), 1..4),
        recovery in any::<bool>(),
    ) {
        let documents: Vec<Document> = files
            .iter()
            .enumerate()
            .map(|(number, lines)| Document::parse(text_of(number, lines).as_bytes()))
            .collect();
        let names: Vec<String> = (0..documents.len()).map(|number| number.to_string()).collect();
        let given: Vec<File<'_>> =
            names.iter().zip(&documents).map(|(name, doc)| File { name, doc }).collect();
        let defaults = evaluate(&given);
        let value = |name: &str| {
            defaults.vars.get(name).and_then(|own| own.value.clone()).unwrap_or_default()
        };
        // What the heredoc of 10_linux writes.
        let (id, args) = if recovery {
            ("l-recovery-1", format!("single {}", value(NAMES[0])))
        } else {
            ("l-1", format!("{} {}", value(NAMES[0]), value(NAMES[1])))
        };
        let text = format!(
            "### BEGIN /etc/grub.d/10_linux ###\nmenuentry A --id {id} {{\n\tlinux\t/k root=x ro {args}\n}}\n\
             ### END /etc/grub.d/10_linux ###\n",
        );
        let script = Script::parse(text.as_bytes()).unwrap();
        let tracer = Tracer::new(&Sources {
            grub_cfg: Some(("g", &script)),
            grubenv: None,
            defaults: Some(&defaults),
        });
        let menu = script.menu(&Context::default());
        let arguments = tracer.menu_entry(&menu.entries[0]);
        let own: Vec<_> = arguments.iter().map(|argument| argument.arg.clone()).collect();
        prop_assert_eq!(own.as_slice(), menu.entries[0].cmdline.args());
        for argument in arguments {
            let Some((file, line)) = place(argument.arg.raw()) else {
                prop_assert_eq!(argument.generator.as_deref(), Some("/etc/grub.d/10_linux"));
                continue;
            };
            let written = argument.written().unwrap();
            prop_assert_eq!((&written.file, written.line), (&names[file], line), "{}", argument);
            prop_assert_eq!(argument.origins.len(), 2);
        }
    }

    #[test]
    fn every_argument_of_a_menu_comes_from_where_it_is_written(
        sets in prop::collection::vec((0..3usize, 0..3usize), 0..6),
        entries in prop::collection::vec(prop::collection::vec(0..5usize, 0..6), 1..4),
    ) {
        let names = ["a", "b", "tuned_params"];
        let mut text = String::from("load_env\n");
        let mut line = 1;
        for (name, form) in sets {
            line += 1;
            let name = names[name];
            match form {
                0 => writeln!(text, "set {name}=\"w0x{line}y1 w0x{line}y2\""),
                1 => writeln!(text, "{name}=w0x{line}y1"),
                _ => writeln!(text, "if true; then set {name}='w0x{line}y1'; fi"),
            }.unwrap();
        }
        for (number, parts) in entries.iter().enumerate() {
            line += 2;
            write!(text, "menuentry e{number} {{\n  linux /k").unwrap();
            for (count, part) in parts.iter().enumerate() {
                match part {
                    0 => write!(text, " w0x{line}y{count}"),
                    1 => write!(text, " \"w0x{line}y{count} z\""),
                    2 => write!(text, " $a"),
                    3 => write!(text, " \"${{b}}\""),
                    _ => write!(text, " $tuned_params"),
                }.unwrap();
            }
            text.push_str("\n}\n");
            line += 1;
        }
        let mut block = EnvBlock::empty();
        block.set("a", "w1x2y1 w1x2y2").unwrap();
        block.set("tuned_params", "w1x3y1").unwrap();
        let script = Script::parse(text.as_bytes()).unwrap();
        let env: BTreeMap<String, String> = block.iter().collect();
        let menu = script.menu(&Context::with_env(env));
        let tracer = Tracer::new(&Sources {
            grub_cfg: Some(("0", &script)),
            grubenv: Some(("1", &block)),
            defaults: None,
        });
        for entry in &menu.entries {
            let arguments = tracer.menu_entry(entry);
            let own: Vec<_> = arguments.iter().map(|argument| argument.arg.clone()).collect();
            prop_assert_eq!(own.as_slice(), entry.cmdline.args());
            for argument in &arguments {
                prop_assert!(argument.complete, "{}", argument);
                let word = argument.arg.raw().trim_matches('"');
                let Some((file, line)) = place(word) else { continue };
                let written = argument.written().unwrap();
                prop_assert_eq!((written.file.as_str(), written.line), (["0", "1"][file], line), "{}", text);
            }
        }
    }
}

#[test]
fn a_debian_line_leads_to_the_drop_in() {
    let grub = Document::parse(
        b"GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\nGRUB_CMDLINE_LINUX=\"console=ttyS0\"\n",
    );
    let cloud = Document::parse(
        b"# cloud\nGRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX dyndbg='file x +p'\"\nMODE=pt\n\
          GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT iommu=$MODE\"\n",
    );
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
    let script = Script::parse(
        b"### BEGIN /etc/grub.d/10_linux ###\n\
          menuentry A --id g { linux /k root=UUID=1 ro console=ttyS0 dyndbg='file x +p' quiet iommu=pt $vt\n}\n\
          menuentry R --id g-recovery- { linux /k root=UUID=1 ro single console=ttyS0 dyndbg='file x +p'\n}\n\
          menuentry S --id s { linux /k quiet\n}\n\
          ### END /etc/grub.d/10_linux ###\n\
          menuentry C --id c { linux /k console=ttyS0 dyndbg='file x +p' quiet iommu=pt\n}\n",
    )
    .unwrap();
    let tracer = Tracer::new(&Sources {
        grub_cfg: Some(("grub.cfg", &script)),
        grubenv: None,
        defaults: Some(&defaults),
    });
    let menu = script.menu(&Context::default());
    let of = |entry: usize| shown(&tracer.menu_entry(&menu.entries[entry]));
    assert_eq!(
        of(0),
        [
            "root=UUID=1  grub.cfg:2 < /etc/grub.d/10_linux",
            "ro  grub.cfg:2 < /etc/grub.d/10_linux",
            "console=ttyS0  grub.cfg:2 < grub:3 (GRUB_CMDLINE_LINUX)",
            "\"dyndbg=file x +p\"  grub.cfg:2 < 50.cfg:2 (GRUB_CMDLINE_LINUX)",
            "quiet  grub.cfg:2 < grub:2 (GRUB_CMDLINE_LINUX_DEFAULT)",
            "iommu=pt  grub.cfg:2 < 50.cfg:4 (GRUB_CMDLINE_LINUX_DEFAULT) < 50.cfg:3 (MODE)",
        ]
    );
    assert_eq!(
        of(1)[2..],
        [
            "single  grub.cfg:4 < /etc/grub.d/10_linux",
            "console=ttyS0  grub.cfg:4 < grub:3 (GRUB_CMDLINE_LINUX)",
            "\"dyndbg=file x +p\"  grub.cfg:4 < 50.cfg:2 (GRUB_CMDLINE_LINUX)",
        ]
    );
    // An entry that is not what the generator would write, and one that it has not written.
    assert_eq!(of(2), ["quiet  grub.cfg:6 < /etc/grub.d/10_linux"]);
    assert_eq!(tracer.menu_entry(&menu.entries[2])[0].written(), None);
    assert_eq!(of(3)[0], "console=ttyS0  grub.cfg:9");
}

#[test]
fn a_variable_that_a_generator_sets_names_the_generator() {
    let script = Script::parse(
        b"### BEGIN /etc/grub.d/00_tuned ###\nset tuned_params=\"isolcpus=2\"\n### END /etc/grub.d/00_tuned ###\n\
          menuentry A { linux /k $tuned_params; }\nset own=1\nmenuentry B { linux /k $own; }\nblscfg\n",
    )
    .unwrap();
    let tracer = Tracer::new(&Sources {
        grub_cfg: Some(("g", &script)),
        ..Sources::default()
    });
    let menu = script.menu(&Context::default());
    let of = |entry: usize| tracer.menu_entry(&menu.entries[entry]);
    assert_eq!(
        shown(&of(0)),
        ["isolcpus=2  g:4 < g:2 (tuned_params) < /etc/grub.d/00_tuned"]
    );
    assert_eq!(of(0)[0].written(), None);
    assert_eq!(shown(&of(1)), ["1  g:6 < g:5 (own)"]);
    assert_eq!(of(1)[0].written().unwrap().line, 5);
    let file = Snippet::parse("a-1.conf", b"linux /k\noptions $tuned_params\n");
    let variables = tracer.bls_variables(&menu);
    let entries = bls::menu(std::slice::from_ref(&file), Order::Rpm, &variables.values());
    assert_eq!(
        shown(&tracer.bls_entry(&entries[0], &file, "a-1.conf", &variables)),
        ["isolcpus=2  a-1.conf:2 < g:2 (tuned_params) < /etc/grub.d/00_tuned"]
    );
}

#[test]
fn a_literal_set_again_counts_as_the_later_one_and_computed_text_as_nobodys() {
    let grub = Document::parse(b"GRUB_A=quiet\nGRUB_B=$(cat x)\n");
    let again = Document::parse(
        b"GRUB_A=quiet\neval \"GRUB_C=$GRUB_A\"\nfor x in a b; do GRUB_D=$x; done\n",
    );
    let vars = evaluate(&[
        File {
            name: "1",
            doc: &grub,
        },
        File {
            name: "2",
            doc: &again,
        },
    ])
    .vars;
    let origin = |name: &str| {
        vars[name]
            .pieces
            .first()
            .and_then(|piece| piece.origin.clone())
    };
    assert_eq!(origin("GRUB_A").unwrap().to_string(), "2:1 (GRUB_A)");
    assert_eq!(vars["GRUB_B"].pieces, []);
    assert_eq!(vars["GRUB_C"].value.as_deref(), Some("quiet"));
    assert_eq!(origin("GRUB_C"), None);
    assert_eq!(vars["GRUB_D"].value.as_deref(), Some("b"));
    assert_eq!(origin("GRUB_D"), None);
}

#[test]
fn what_is_not_followed_is_said_to_be_unknown() {
    let script = Script::parse(
        b"function f { linux /k $1 x; }\nmenuentry A a1 { f b; }\nmenuentry B { eval \"linux /k y\"; }\n\
          for v in q; do true; done\nmenuentry C { linux /k $v $given \"a${given}b\"; }\n",
    )
    .unwrap();
    let context = Context {
        variables: [("given".to_string(), "z".to_string())].into(),
        ..Context::default()
    };
    let menu = script.menu(&context);
    let tracer = Tracer::new(&Sources {
        grub_cfg: Some(("g", &script)),
        ..Sources::default()
    });
    let of = |entry: usize| shown(&tracer.menu_entry(&menu.entries[entry]));
    assert_eq!(of(0), ["b  g:1 < unknown", "x  g:1"]);
    assert_eq!(of(1), ["y  unknown"]);
    assert_eq!(
        of(2),
        ["q  g:5 < unknown", "z  g:5 < unknown", "azb  g:5 < unknown"]
    );
}

#[test]
fn bls_options_lead_to_the_file_and_through_variables() {
    let script = Script::parse(
        b"load_env\nif [ -z \"${kernelopts}\" ]; then\n  set kernelopts=\"root=/dev/sda1 ro\"\nfi\n\
          set tuned_params=\"isolcpus=2-7\"\ninsmod blscfg\nblscfg\nset tuned_params=late\n",
    )
    .unwrap();
    let file = Snippet::parse(
        "m-1.conf",
        b"title T\nlinux /vmlinuz extra\n# c\noptions $kernelopts quiet $tuned_params x=\"a b\"\n",
    );
    let bare = Snippet::parse("m-0.conf", b"linux /vmlinuz\n");
    let check = |block: &EnvBlock, wanted: &[&str]| {
        let menu = script.menu(&Context::with_env(block.iter().collect()));
        let tracer = Tracer::new(&Sources {
            grub_cfg: Some(("grub.cfg", &script)),
            grubenv: Some(("grubenv", block)),
            defaults: None,
        });
        let variables = tracer.bls_variables(&menu);
        let files = [file.clone(), bare.clone()];
        let entries = bls::menu(&files, Order::Rpm, &variables.values());
        let arguments = tracer.bls_entry(&entries[0], &files[0], "entries/m-1.conf", &variables);
        let own: Vec<_> = arguments.iter().map(|a| a.arg.clone()).collect();
        assert_eq!(own, entries[0].cmdline.args());
        assert_eq!(shown(&arguments), wanted);
        shown(&tracer.bls_entry(&entries[1], &files[1], "entries/m-0.conf", &variables))
    };
    let mut block = EnvBlock::empty();
    let bare = check(
        &block,
        &[
            "extra  entries/m-1.conf:2",
            "root=/dev/sda1  entries/m-1.conf:4 < grub.cfg:3 (kernelopts)",
            "ro  entries/m-1.conf:4 < grub.cfg:3 (kernelopts)",
            "quiet  entries/m-1.conf:4",
            "isolcpus=2-7  entries/m-1.conf:4 < grub.cfg:5 (tuned_params)",
            "\"x=a b\"  entries/m-1.conf:4",
        ],
    );
    assert_eq!(bare, [""; 0]);
    block.set("saved_entry", "m-1").unwrap();
    block.set("kernelopts", "root=/dev/sdb1").unwrap();
    block.set("default_kernelopts", "dflt").unwrap();
    let bare = check(
        &block,
        &[
            "extra  entries/m-1.conf:2",
            "root=/dev/sdb1  entries/m-1.conf:4 < grubenv:3 (kernelopts)",
            "quiet  entries/m-1.conf:4",
            "isolcpus=2-7  entries/m-1.conf:4 < grub.cfg:5 (tuned_params)",
            "\"x=a b\"  entries/m-1.conf:4",
        ],
    );
    assert_eq!(bare, ["dflt  grubenv:4 (default_kernelopts)"]);
    let variables = Variables::from_env("grubenv", &block);
    assert_eq!(variables.origin("kernelopts").unwrap().line, 3);
    assert_eq!(variables.origin("nothing"), None);
}
