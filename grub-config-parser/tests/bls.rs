//! Boot Loader Specification entries: order, substitution, edits.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests start programs, read files and panic"
)]

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use grub_config_parser::bls::{
    Evidence, OptionsError, Order, Snippet, compare, expand, file_version_order, menu,
};
use grub_config_parser::cmdline::{Arg, Edit};
use proptest::prelude::*;

fn ids(names: &[&str], order: Order) -> Vec<String> {
    let files: Vec<Snippet> = names
        .iter()
        .map(|n| Snippet::parse(n, b"linux /k\n"))
        .collect();
    menu(&files, order, &BTreeMap::new())
        .into_iter()
        .map(|entry| entry.id)
        .collect()
}

#[test]
fn the_two_orders_disagree_about_everyday_kernels() {
    let names = [
        "m-5.14.0-70.el9.x86_64.conf",
        "m-5.14.0-70.13.1.el9_0.x86_64.conf",
    ];
    assert_eq!(ids(&names, Order::FileVerCmp)[0], "m-5.14.0-70.el9.x86_64");
    assert_eq!(ids(&names, Order::Rpm)[0], "m-5.14.0-70.13.1.el9_0.x86_64");
    let names = [
        "m-5.9.1-1.conf",
        "m-5.10.0-1.conf",
        "m-0-rescue.conf",
        ".m-6.0-1.conf",
    ];
    assert_eq!(
        ids(&names, Order::Rpm),
        ["m-5.10.0-1", "m-5.9.1-1", "m-0-rescue"],
        "hidden files are not read"
    );
    assert_eq!(ids(&["a~1.conf", "a.conf"], Order::Rpm), ["a", "a~1"]);
    assert_eq!(
        ids(&["a-1+debug.conf", "a-1.conf"], Order::Rpm),
        ["a-1+debug", "a-1"]
    );
    assert_eq!(ids(&["b.conf", "c.txt"], Order::FileVerCmp), ["b"]);
}

proptest! {
    #![proptest_config(common::cases(300))]

    #[test]
    fn file_versions_are_ordered_as_sort_orders_them(
        names in prop::collection::vec("[a0~1-]{1,3}[a-c0-2.~_+-]{0,8}(\\.conf)?", 2..6),
    ) {
        let Some(sort) = common::program("sort") else { return Ok(()) };
        let mut child = Command::new(sort)
            .arg("-V")
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all((names.join("\n") + "\n").as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let sorted = String::from_utf8(output.stdout).unwrap();
        let sorted: Vec<&str> = sorted.lines().collect();
        // `sort` splits ties by bytes.
        let mut own: Vec<&str> = names.iter().map(String::as_str).collect();
        own.sort_by(|a, b| file_version_order(a.as_bytes(), b.as_bytes()).then(a.cmp(b)));
        prop_assert_eq!(own, sorted);
    }

    #[test]
    fn both_orders_are_orders(
        a in "[a0.~1+-]{0,8}", b in "[a0.~1+-]{0,8}",
        order in prop::sample::select(&[Order::FileVerCmp, Order::Rpm, Order::RpmVersion][..]),
    ) {
        prop_assert_eq!(compare(&a, &b, order), compare(&b, &a, order).reverse());
        prop_assert!(compare(&a, &a, order).is_eq());
    }

    #[test]
    fn any_bytes_are_kept_and_an_edit_is_found(
        text in prop::collection::vec(prop::sample::select(&b"a #\n\r\t\0options "[..]), 0..60),
    ) {
        let file = Snippet::parse("x.conf", &text);
        prop_assert_eq!(file.to_bytes(), text);
        let edited = file.with_value("options", "ro quiet");
        prop_assert_eq!(edited.value("options"), Some("ro quiet"));
        let others = |file: &Snippet| -> Vec<(String, String)> {
            let keys = file.keys().filter(|(key, _)| *key != "options");
            keys.map(|(key, value)| (key.to_string(), value.to_string())).collect()
        };
        prop_assert_eq!(others(&edited), others(&file));
    }
}

#[test]
fn variables_are_put_in_as_grub_does_it() {
    let env = [("opts", "root=/dev/sda1 ro"), ("t", "x")];
    let value = |text: &str| {
        expand(text, |name| {
            env.iter()
                .find(|(own, _)| *own == name)
                .map(|(_, value)| *value)
        })
    };
    for (text, wanted) in [
        ("$opts quiet", Some("root=/dev/sda1 ro quiet")),
        ("$opts", Some("root=/dev/sda1 ro ")),
        ("quiet $opts", Some("quiet root=/dev/sda1 ro ")),
        ("$unset $opts", Some("root=/dev/sda1 ro ")),
        ("$unset $other", Some("")),
        ("$unset$opts", None),
        ("ro quiet", Some("ro quiet")),
        ("$opts/x yy", Some("root=/dev/sda1 ro /x yy")),
        // A single byte is lost.
        ("x", None),
        ("ro $t", Some("ro ")),
        ("a $opts", Some("a root=/dev/sda1 ro ")),
    ] {
        assert_eq!(value(text).as_deref(), wanted, "{text}");
    }
}

#[test]
fn options_go_through_the_script_and_the_loader() {
    let file = Snippet::parse(
        "m-1.conf",
        b"# made\ntitle T\nlinux /vmlinuz\noptions a=\"b c\" 'd' e\\\"f $xy\noptions ignored\n\nversion 1\n",
    );
    assert_eq!(
        file.value("version"),
        None,
        "reading stops at the empty line"
    );
    let env = [("xy".to_string(), "y z".to_string())].into();
    let entries = menu(&[file], Order::Rpm, &env);
    assert_eq!(entries[0].raw, "\"a=b c\" d e\\\"f y z");
    assert_eq!(
        (entries[0].title.as_str(), entries[0].linux.as_str()),
        ("T", "/vmlinuz")
    );
    let open = Snippet::parse("m-1.conf", b"linux /vmlinuz\noptions a='b\n");
    assert_eq!(menu(&[open], Order::Rpm, &env)[0].raw, "");
}

#[test]
fn an_edit_changes_one_value_only() {
    let text = b"title T\r\noptions  a b\r\nlinux /k\n# end";
    let edited = Snippet::parse("x.conf", text).with_value("options", "c");
    assert_eq!(
        edited.to_bytes(),
        b"title T\r\noptions  c\r\nlinux /k\n# end"
    );
    // Bytes that GRUB drops or does not take for text.
    for text in [
        b"options \ra\rb\n".as_slice(),
        b"\r options a\xffb\n",
        b"options a\0b\n",
    ] {
        let edited = Snippet::parse("x.conf", text).with_value("options", "c");
        assert_eq!(edited.value("options"), Some("c"), "{edited:?}");
        assert!(edited.to_bytes().ends_with(b"c\n") && !edited.to_bytes().contains(&b'a'));
    }
    let added = Snippet::parse("x.conf", b"linux /k\n\nversion 1\n").with_value("options", "c");
    assert_eq!(added.to_bytes(), b"linux /k\noptions c\n\nversion 1\n");
}

#[test]
fn the_corpus_is_read() {
    let files: Vec<Snippet> = common::corpus_files("bls")
        .iter()
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let text = std::fs::read(path).unwrap();
            let file = Snippet::parse(&name, &text);
            assert_eq!(file.to_bytes(), text);
            file
        })
        .collect();
    let env = [(
        "kernelopts".to_string(),
        "root=/dev/mapper/cl-root ro".to_string(),
    )]
    .into();
    for order in [Order::FileVerCmp, Order::Rpm] {
        for entry in menu(&files, order, &env) {
            let options = files[entry.file].value("options").unwrap_or("");
            if options.contains("$kernelopts") {
                assert!(
                    entry.cmdline.last("root").is_some(),
                    "{}: {}",
                    entry.id,
                    entry.raw
                );
            }
        }
    }
}

#[test]
fn el8_compares_versions_first_where_every_file_has_one() {
    let file = |name: &str, version: &str| {
        Snippet::parse(name, format!("version {version}\nlinux /k\n").as_bytes())
    };
    let order = |files: &[Snippet], order| -> Vec<String> {
        let entries = menu(files, order, &BTreeMap::new());
        entries.into_iter().map(|entry| entry.id).collect()
    };
    // Two machine ids: by name the greater id wins, by version the newer kernel.
    let mut files = vec![
        file("aaaa-4.18.0-477.el8.conf", "4.18.0-477.el8"),
        file("bbbb-4.18.0-240.el8.conf", "4.18.0-240.el8"),
        file("bbbb-0-rescue.conf", "0-rescue-bbbb"),
    ];
    let by_version = [
        "aaaa-4.18.0-477.el8",
        "bbbb-4.18.0-240.el8",
        "bbbb-0-rescue",
    ];
    assert_eq!(order(&files, Order::RpmVersion), by_version);
    assert_eq!(order(&files, Order::Rpm)[0], "bbbb-4.18.0-240.el8");
    // The same version twice: then the names, and neither is left out.
    let same = [
        file("a-1.conf", "5-1"),
        file("b-1.conf", "5-1"),
        file("a_1.conf", "5-1"),
    ];
    assert_eq!(order(&same, Order::RpmVersion).len(), 3);
    assert_eq!(order(&same, Order::RpmVersion)[0], "b-1");
    // One file without, and only names count.
    files.push(Snippet::parse("bbbb-0-1.conf", b"linux /k\n"));
    assert_eq!(order(&files, Order::RpmVersion), order(&files, Order::Rpm));
}

#[test]
fn what_is_installed_says_the_order_or_nothing() {
    let order = |os: &str, package: Option<&str>, modules: &[&str], image: Option<&[u8]>| {
        Evidence {
            os_release: os.as_bytes(),
            package_version: package,
            modules,
            image,
        }
        .order()
    };
    let upstream: &[u8] = b"\0[-p|--path] [-f|--enable-fallback] DIR\0";
    let red_hat: &[u8] = b"\0blscfg\0bls_import\0";
    let el = |version: &str| {
        format!("NAME=x\nID=\"rhel\"\nID_LIKE=\"fedora\"\nVERSION_ID=\"{version}\"\n")
    };
    for (os, package, modules, image, wanted) in [
        (el("8.6"), None, &[][..], None, Some(Order::RpmVersion)),
        (
            el("9.4"),
            Some("1:2.06-80.el9"),
            &["blscfg.mod"],
            Some(red_hat),
            Some(Order::Rpm),
        ),
        (
            el("10.0"),
            Some("2.12-15.el10"),
            &[],
            None,
            Some(Order::Rpm),
        ),
        (el("7.9"), None, &[], None, None),
        // The package is not that of this release.
        (el("9.4"), Some("2.02-156.el8"), &[], None, None),
        (el("9.4"), None, &["blsuki.mod"], None, None),
        (el("9.4"), None, &["blsuki.mod", "blscfg.mod"], None, None),
        (el("9.4"), Some("garbage"), &[], None, None),
        (
            "ID=fedora\nVERSION_ID=42\n".into(),
            Some("2.12-30.fc42"),
            &[],
            None,
            Some(Order::Rpm),
        ),
        (
            "ID=fedora\nVERSION_ID=29\n".into(),
            Some("2.02-63.fc29"),
            &[],
            None,
            None,
        ),
        (
            "ID=debian\nVERSION_ID=\"13\"\n".into(),
            Some("2.12-9"),
            &[],
            None,
            None,
        ),
        (
            "ID=debian\n".into(),
            Some("2.14-2"),
            &[],
            None,
            Some(Order::FileVerCmp),
        ),
        (
            "ID=debian\n".into(),
            None,
            &["blsuki.mod"],
            Some(upstream),
            Some(Order::FileVerCmp),
        ),
        ("ID=debian\n".into(), None, &[], None, None),
        ("ID=debian\n".into(), None, &[], Some(red_hat), None),
        (
            "ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\"\n".into(),
            Some("2.14-1"),
            &["blscfg.mod"],
            None,
            None,
        ),
        // A system that is not known, by what is installed alone.
        (
            "ID=amzn\nVERSION_ID=2023\n".into(),
            Some("1:2.06-61.amzn2023"),
            &["blscfg.mod"],
            None,
            Some(Order::Rpm),
        ),
        ("ID=amzn\n".into(), Some("2.06"), &[], None, None),
        (
            String::new(),
            Some("2.14"),
            &[],
            Some(upstream),
            Some(Order::FileVerCmp),
        ),
        (String::new(), None, &[], None, None),
    ] {
        assert_eq!(
            order(&os, package, modules, image),
            wanted,
            "{os} {package:?} {modules:?}"
        );
    }
}

#[test]
fn options_are_edited_only_where_the_kernel_gets_what_was_asked_for() {
    let edit = |text: &str, edit: &Edit<'_>| {
        let file = Snippet::parse("a.conf", text.as_bytes());
        file.edit_options(edit)
            .map(|edited| edited.map(|file| String::from_utf8(file.to_bytes()).unwrap()))
    };
    let pt = Arg::new("iommu=pt");
    let set = |text: &str| edit(text, &Edit::Set(&pt));
    assert_eq!(
        set("options ro\noptions x\n"),
        Ok(Some("options ro iommu=pt\noptions x\n".into()))
    );
    assert_eq!(set("options ro iommu=pt\n"), Ok(None));
    assert_eq!(
        set("options iommu=off -- s\n"),
        Ok(Some("options iommu=off iommu=pt -- s\n".into()))
    );
    assert_eq!(
        set("options $kernelopts"),
        Ok(Some("options $kernelopts iommu=pt".into()))
    );
    assert_eq!(
        set("linux /k\n\nx 1\n"),
        Ok(Some("linux /k\noptions iommu=pt\n\nx 1\n".into()))
    );
    assert_eq!(
        set("options a='b c'\n"),
        Ok(Some("options a='b c' iommu=pt\n".into()))
    );
    // A blank that goes with an unset variable.
    for glued in ["options ab$\n", "options ab$x\n", "options $xx$yy ab\n"] {
        assert!(
            matches!(set(glued), Err(OptionsError::Script { .. })),
            "{glued}"
        );
    }
    // Open quotes of either kind, and an end of the command.
    assert!(matches!(
        set("options a='b\n"),
        Err(OptionsError::Script { line: 1, .. })
    ));
    assert!(matches!(
        set("# c\noptions a=\"b\n"),
        Err(OptionsError::Script { line: 2, .. })
    ));
    assert!(matches!(
        set("options a ; b\n"),
        Err(OptionsError::Script { .. })
    ));
    assert!(matches!(
        edit("options a\n", &Edit::Set(&Arg::new("x=a;b"))),
        Err(OptionsError::Script { .. })
    ));
    assert!(matches!(
        set("options a\rb c\n"),
        Err(OptionsError::NotText { line: 1 })
    ));
    let remove = |text: &str, name: &str| edit(text, &Edit::Remove(name));
    assert_eq!(
        remove("options quiet ro\nversion 1\n", "quiet"),
        Ok(Some("options ro\nversion 1\n".into()))
    );
    assert_eq!(
        remove("options quiet\nversion 1\n", "quiet"),
        Err(OptionsError::Empty { line: 1 })
    );
    assert_eq!(remove("linux /k\n", "quiet"), Ok(None));
    let file = Snippet::parse("a.conf", b"options a\n# c\noptions b\noptions c\n");
    assert_eq!(file.ignored_options(), [3, 4]);
}
