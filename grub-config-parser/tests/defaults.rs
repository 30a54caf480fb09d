//! Shell files without a shell: the corpus with what dash gave for it, edits, and any bytes.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests read files and panic"
)]

mod common;

use grub_config_parser::defaults::{Document, EditError, File, Kind, evaluate};
use proptest::prelude::*;

/// Files whose expectations were made without `set -e`: under it they stop at a command that is not
/// there, before the variables that the expectation lists.
const STOPS_UNDER_SET_E: &[&str] = &["026-postcopy-grub"];

#[test]
fn the_corpus_has_the_values_that_dash_gave() {
    let Some(dir) = common::corpus("grub-default") else {
        return;
    };
    let expected = std::fs::read(dir.join("EXPECTED.json")).unwrap();
    let expected: serde_json::Value = serde_json::from_slice(&expected).unwrap();
    let mut compared = 0;
    for (name, case) in expected.as_object().unwrap() {
        let mut base = String::new();
        for (name, value) in case["base"].as_object().into_iter().flatten() {
            base.push_str(&format!("{name}='{}'\n", value.as_str().unwrap()));
        }
        let base = Document::parse(base.as_bytes());
        let doc = Document::parse(&std::fs::read(dir.join(name)).unwrap());
        let evaluation = evaluate(&[
            File {
                name: "base",
                doc: &base,
            },
            File { name, doc: &doc },
        ]);
        let dash = case["dash"].as_object().unwrap();
        if dash.contains_key("error") || STOPS_UNDER_SET_E.contains(&name.as_str()) {
            assert!(evaluation.aborts.is_some(), "{name} stops");
            continue;
        }
        for (variable, value) in dash {
            let own = &evaluation.vars[variable];
            match own.kind {
                Kind::Computed => assert_eq!(own.value, None, "{name}: {variable}"),
                _ => assert_eq!(own.value.as_deref(), value.as_str(), "{name}: {variable}"),
            }
            compared += 1;
        }
        for (variable, own) in &evaluation.vars {
            let known = variable.starts_with("GRUB_") && own.kind != Kind::Computed;
            assert!(
                !known || dash.contains_key(variable),
                "{name}: {variable} is set"
            );
        }
    }
    assert!(compared > 300, "{compared} values compared");
}

fn removed(text: &str, variable: &str, pattern: &str) -> String {
    let document = Document::parse(text.as_bytes())
        .remove_words(variable, pattern)
        .unwrap();
    String::from_utf8(document.to_bytes()).unwrap()
}

#[test]
fn words_are_taken_out_and_every_other_byte_stays() {
    for (before, pattern, after) in [
        ("X=\"quiet splash\"\n", "quiet", "X=\"splash\"\n"),
        ("X=\"quiet splash\"\n", "splash", "X=\"quiet\"\n"),
        ("X=quiet # why\n", "quiet", "X= # why\n"),
        ("X='a=1 b a=2  c'", "a", "X='b  c'"),
        ("X='a=1 b a=2  c'", "a=2", "X='a=1 b  c'"),
        ("X=a\\ b\\ c\n", "b", "X=a\\ c\n"),
        ("X=\"a \\\n  b \\\n c\"\n", "b", "X=\"a \\\n \\\n c\"\n"),
        ("X=\"$X quiet\"\nY=quiet\n", "quiet", "X=\"$X\"\nY=quiet\n"),
        (
            "X=\"$Xquiet ${Y:+$Y }quiet\"\n",
            "quiet",
            "X=\"$Xquiet ${Y:+$Y }quiet\"\n",
        ),
        ("export X='a b' Z=b\n", "b", "export X='a' Z=b\n"),
        (
            "if [ -f x ]; then\n\tX=\"a b\"\nfi\n",
            "b",
            "if [ -f x ]; then\n\tX=\"a\"\nfi\n",
        ),
        ("X=\"acpi_osi=\\\"a b\\\" c\"\n", "acpi-osi", "X=\"c\"\n"),
        ("X=a'b c'\"d e\"\r\n", "cd", "X=a'b'\" e\"\r\n"),
        ("X='a'\0'b c'", "c", "X='a'\0'b'"),
        ("X='a -- a'\n", "b", "X='a -- a'\n"),
    ] {
        assert_eq!(
            removed(before, "X", pattern),
            after,
            "{before:?} less {pattern}"
        );
    }
}

#[test]
fn what_is_computed_is_not_edited() {
    let document = Document::parse(b"X=a\nX=\"$(cat /proc/cmdline) quiet\"\n");
    assert_eq!(
        document.remove_words("X", "quiet").unwrap_err(),
        EditError::Computed {
            variable: "X".into(),
            line: 2
        }
    );
    assert!(document.remove_words("Y", "quiet").is_ok());
    let broken = Document::parse(b"X=quiet\nfi\n");
    assert_eq!(
        broken.remove_words("X", "quiet").unwrap_err(),
        EditError::Syntax { line: 2 }
    );
}

#[test]
fn what_others_touch_is_computed() {
    let document = Document::parse(
        b"GRUB_A=1\nGRUB_B=$(uname)\n[ -f x ] && GRUB_C=1\n. ./other\nGRUB_D=$GRUB_A\nGRUB_E=x\n",
    );
    let vars = evaluate(&[File {
        name: "f",
        doc: &document,
    }])
    .vars;
    for name in ["GRUB_A", "GRUB_B", "GRUB_C", "GRUB_D"] {
        assert_eq!(
            (vars[name].kind, &vars[name].value),
            (Kind::Computed, &None),
            "{name}"
        );
    }
    assert_eq!(vars["GRUB_E"].value.as_deref(), Some("x"));
    assert_eq!(vars["GRUB_E"].assignments[0].line, 6);
}

proptest! {
    #[test]
    fn any_bytes_are_kept_and_read_without_a_panic(
        text in prop::collection::vec(any::<u8>(), 0..160),
    ) {
        check_lossless(&text)?;
    }

    #[test]
    fn any_pile_of_signs_is_kept_and_read_without_a_panic(
        text in "[A=a'\"\\\\$`(){};&|<>#\n \t\r\u{0}~!*-]{0,40}",
    ) {
        check_lossless(text.as_bytes())?;
    }

    #[test]
    fn removing_is_what_the_command_line_says(
        args in prop::collection::vec("[ab](=[xy])?", 0..6),
        quote in prop::sample::select(&["'", "\""][..]),
        pattern in prop::sample::select(&["a", "a=x", "b", "b=y"][..]),
    ) {
        use grub_config_parser::cmdline::CommandLine;
        let text = format!("# a b\nX={quote}{}{quote} # a=x\n", args.join(" "));
        let after = removed(&text, "X", pattern);
        let mut line = CommandLine::parse(&args.join(" "));
        line.remove(pattern);
        prop_assert_eq!(after, format!("# a b\nX={quote}{line}{quote} # a=x\n"));
    }
}

fn check_lossless(text: &[u8]) -> Result<(), TestCaseError> {
    let document = Document::parse(text);
    prop_assert_eq!(document.to_bytes(), text);
    let mut at = 0;
    for token in document.tokens() {
        prop_assert_eq!(token.span.start, at);
        prop_assert!(token.span.end > at);
        at = token.span.end;
    }
    prop_assert_eq!(at, text.len());
    evaluate(&[File {
        name: "f",
        doc: &document,
    }]);
    let _ = document.remove_words("A", "a");
    Ok(())
}

#[test]
fn hostile_nesting_ends_with_an_error_and_not_with_the_stack() {
    for open in [
        "${A:-",
        "$((",
        "$(",
        "(",
        "{ ",
        "if ",
        "while ",
        "f() ",
        "eval '",
        "case x in y) ",
    ] {
        let text = format!(
            "GRUB_A=1\nGRUB_B={}\n{}",
            open.repeat(20_001),
            open.repeat(20_001)
        );
        let document = Document::parse(text.as_bytes());
        let evaluation = evaluate(&[File {
            name: "f",
            doc: &document,
        }]);
        assert!(evaluation.aborts.is_some(), "{open}");
        assert_eq!(
            evaluation.vars["GRUB_A"].value.as_deref(),
            Some("1"),
            "{open}"
        );
    }
    for text in [
        "while true; do GRUB_A=$GRUB_A$GRUB_A.; done\n",
        "f() { f; }\nf\n",
        "GRUB_A='eval \"$GRUB_A\"'\neval \"$GRUB_A\"\n",
        "f() { f & f | f; (f); }\nf\n",
    ] {
        evaluate(&[File {
            name: "f",
            doc: &Document::parse(text.as_bytes()),
        }]);
    }
}

#[test]
fn words_are_added_where_a_person_would_put_them() {
    let cases = [
        ("GRUB_X=\"quiet\"\n", "GRUB_X=\"quiet iommu=pt\"\n"),
        (
            "GRUB_X='quiet splash'  # why\nY=1\n",
            "GRUB_X='quiet splash iommu=pt'  # why\nY=1\n",
        ),
        ("GRUB_X=\"\"\n", "GRUB_X=\"iommu=pt\"\n"),
        ("GRUB_X=''\n", "GRUB_X='iommu=pt'\n"),
        ("GRUB_X=\n", "GRUB_X=\"iommu=pt\"\n"),
        ("GRUB_X=quiet\n", "GRUB_X=quiet\" iommu=pt\"\n"),
        (
            "GRUB_X=a\nGRUB_X=\"$GRUB_X b\"\n",
            "GRUB_X=a\nGRUB_X=\"$GRUB_X b iommu=pt\"\n",
        ),
        (
            "GRUB_X=\"${GRUB_X:+$GRUB_X }a\"\n",
            "GRUB_X=\"${GRUB_X:+$GRUB_X }a iommu=pt\"\n",
        ),
        ("GRUB_X=\"a $GRUB_B\"\n", "GRUB_X=\"a $GRUB_B iommu=pt\"\n"),
        ("GRUB_X=\"a \\\n  b\"\n", "GRUB_X=\"a \\\n  b iommu=pt\"\n"),
        ("# nothing", "# nothing\nGRUB_X=\"iommu=pt\"\n"),
        ("", "GRUB_X=\"iommu=pt\"\n"),
        ("export GRUB_X=\"a\"\n", "export GRUB_X=\"a iommu=pt\"\n"),
    ];
    for (before, after) in cases {
        let doc = Document::parse(before.as_bytes());
        let new = doc.add_words("GRUB_X", &["iommu=pt".to_owned()]).unwrap();
        assert_eq!(String::from_utf8_lossy(&new.to_bytes()), after);
    }
    let two = Document::parse(b"GRUB_X=\"a\"\n").add_words("GRUB_X", &["b".into(), "c=1".into()]);
    assert_eq!(two.unwrap().to_bytes(), b"GRUB_X=\"a b c=1\"\n");
    for computed in [
        "GRUB_X=\"$(date)\"\n",
        "GRUB_X=`date`\n",
        "if [ -f /x ]; then GRUB_X=a; fi\n",
        "GRUB_X=\"a\n",
    ] {
        let doc = Document::parse(computed.as_bytes());
        assert!(
            doc.add_words("GRUB_X", &["b".to_owned()]).is_err(),
            "{computed}"
        );
    }
}

#[test]
fn the_boot_loader_file_of_suse_is_read() {
    // As `/etc/sysconfig/bootloader` has it: comments with types, quoted values, empty ones.
    let doc = Document::parse(
        b"## Path:\tSystem/Bootloader\n## Type:\tlist(grub,grub2,grub2-efi,none)\n## Default:\tgrub2\n#\n\
          # Type of bootloader in use.\n#\nLOADER_TYPE=\"grub2-bls\"\n\nSECURE_BOOT='yes'\nTRUSTED_BOOT=\n\
          UPDATE_NVRAM=\"yes\" # trailing\n",
    );
    let file = File {
        name: "bootloader",
        doc: &doc,
    };
    let evaluation = evaluate(&[file]);
    assert_eq!(evaluation.aborts, None);
    for (name, value, line) in [
        ("LOADER_TYPE", "grub2-bls", 7),
        ("SECURE_BOOT", "yes", 9),
        ("TRUSTED_BOOT", "", 10),
        ("UPDATE_NVRAM", "yes", 11),
    ] {
        let variable = &evaluation.vars[name];
        assert_eq!(variable.value.as_deref(), Some(value));
        assert_eq!(variable.kind, Kind::Literal);
        assert_eq!(variable.assignments[0].line, line);
    }
    // SUSE's grub2 defaults go through the same reader.
    let doc = Document::parse(b"GRUB_DISTRIBUTOR=\nGRUB_CMDLINE_LINUX_DEFAULT=\"splash=silent quiet security=apparmor\"\n");
    let edited = doc
        .remove_words("GRUB_CMDLINE_LINUX_DEFAULT", "splash")
        .unwrap();
    assert_eq!(
        edited.to_bytes(),
        b"GRUB_DISTRIBUTOR=\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet security=apparmor\"\n"
    );
}
