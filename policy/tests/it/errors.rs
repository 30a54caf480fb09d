//! Every class of mistake: what is said, and where.

use gdr_policy::{Diagnostic, MAX_SIZE, Severity, Source, load};

use crate::{SAMPLE, error, errors, source};

/// Asserts the one error below `version = 1`: place, width, and parts of message and help.
fn refused(text: &str, at: (usize, usize, usize), message: &str, help: &str) -> Diagnostic {
    let found = error(text);
    assert_eq!((found.line, found.column, found.width), at, "{found:#?}");
    assert!(found.message.contains(message), "{found:#?}");
    assert!(
        found.help.as_deref().unwrap_or_default().contains(help),
        "{found:#?}"
    );
    found
}

#[test]
fn unknown_keys_and_tables() {
    let found = refused(
        "[kernel]\niomu = \"off\"\n",
        (3, 1, 4),
        "unknown key `iomu`",
        "`iommu`?",
    );
    assert_eq!(found.key.as_deref(), Some("kernel.iomu"));
    refused(
        "[kernal]\n",
        (2, 2, 6),
        "unknown table `kernal`",
        "`kernel`?",
    );
    refused(
        "iommu = \"off\"\n",
        (2, 1, 5),
        "unknown key `iommu`",
        "belongs in [kernel]",
    );
    refused(
        "[acs]\nversion = 1\n",
        (3, 1, 7),
        "unknown key `version`",
        "at the top",
    );
    refused(
        "[gdr]\nxyzzy = 1\n",
        (3, 1, 5),
        "unknown key `xyzzy` in [gdr]",
        "known here: path",
    );
    refused(
        "[reboot.fleetlok]\n",
        (2, 9, 8),
        "unknown table `fleetlok`",
        "`fleetlock`?",
    );
    refused(
        "[acs]\nrespect-inhibitors = true\n",
        (3, 1, 18),
        "unknown key",
        "known here: scope",
    );
    refused(
        "[reboot]\nrespect-inhibitors = true\n",
        (3, 1, 18),
        "unknown",
        "`respect_inhibitors`",
    );
}

#[test]
fn a_quoted_name_with_a_dot_is_no_path() {
    refused(
        "\"kernel.iommu\" = \"off\"\n",
        (2, 1, 14),
        "unknown key `kernel.iommu`",
        "known here",
    );
}

#[test]
fn wrong_types() {
    refused(
        "[trial]\npanic = \"30\"\n",
        (3, 9, 4),
        "must be a whole number, found a string",
        "",
    );
    refused(
        "[trial]\npanic = 30.0\n",
        (3, 9, 4),
        "must be a whole number, found a float",
        "",
    );
    refused(
        "[reboot]\nallow = \"yes\"\n",
        (3, 9, 5),
        "must be true or false, found a string",
        "",
    );
    refused(
        "[acs]\nclear = \"RR\"\n",
        (3, 9, 4),
        "an array of strings, found a string",
        "",
    );
    refused(
        "[acs]\nclear = [\"RR\", 4]\n",
        (3, 16, 1),
        "must be a string, found an integer",
        "",
    );
    refused(
        "[gdr]\npath = 2026-01-01\n",
        (3, 8, 10),
        "must be a string, found a datetime",
        "",
    );
    refused(
        "kernel = 1\n",
        (2, 10, 1),
        "kernel must be a table, found an integer",
        "[kernel]",
    );
    refused(
        "[[acs]]\n",
        (2, 1, 7),
        "acs is one table, not an array",
        "write [acs]",
    );
    refused(
        "[kernel.iommu]\n",
        (2, 1, 14),
        "must be a string, found a table",
        "",
    );
    let found = errors("version = \"1\"\n").remove(0);
    assert_eq!((found.line, found.column), (1, 11));
    assert!(
        found.message.contains("a whole number, found a string"),
        "{found}"
    );
}

#[test]
fn values_that_are_not_choices() {
    let found = refused(
        "[kernel]\niommu = \"passthru\"\n",
        (3, 9, 10),
        "kernel.iommu: `passthru` is not one of passthrough, off and keep",
        "did you mean `passthrough`?",
    );
    assert_eq!(found.key.as_deref(), Some("kernel.iommu"));
    refused(
        "[gdr]\npath = \"dmabuf\"\n",
        (3, 8, 8),
        "`dmabuf`",
        "`dma-buf`?",
    );
    refused("[gdr]\npath = \"Auto\"\n", (3, 8, 6), "`Auto`", "`auto`?");
    refused(
        "[verify]\nwarn = [\"link\", \"nuna\"]\n",
        (3, 17, 6),
        "`nuna`",
        "`numa`?",
    );
    refused(
        "[reboot]\ncoordinator = \"dbus\"\n",
        (3, 15, 6),
        "`dbus` is not one of logind",
        "",
    );
}

#[test]
fn only_redirect_bits_may_be_cleared() {
    refused(
        "[acs]\nclear = [\"RR\", \"SV\"]\n",
        (3, 16, 4),
        "`SV` (source validation) may not be cleared",
        "guard isolation",
    );
    refused(
        "[acs]\nclear = [\"rr\"]\n",
        (3, 10, 4),
        "`rr`",
        "did you mean `RR`?",
    );
}

#[test]
fn numbers_outside_their_range() {
    refused(
        "[trial]\npanic = 0\n",
        (3, 9, 1),
        "trial.panic: 0 is not between 1 and 3600",
        "",
    );
    refused(
        "[trial]\npanic = 3601\n",
        (3, 9, 4),
        "3601 is not between 1 and 3600",
        "",
    );
    refused(
        "[trial]\npanic = -5\n",
        (3, 9, 2),
        "-5 is not between 1 and 3600",
        "",
    );
    refused(
        "[reboot]\nmax = 11\n",
        (3, 7, 2),
        "11 is not between 0 and 10",
        "",
    );
    refused(
        "[reboot]\nmax = 99999999999999999999\n",
        (3, 7, 20),
        "99999999999999999999 is not between 0 and 10",
        "",
    );
    refused(
        "[trial]\ndeadline = \"59s\"\n",
        (3, 12, 5),
        "59s is not between 1m and 24h",
        "",
    );
    refused(
        "[trial]\ndeadline = \"25h\"\n",
        (3, 12, 5),
        "25h is not between 1m and 24h",
        "",
    );
    refused(
        "[trial]\ndeadline = \"10 min\"\n",
        (3, 12, 8),
        "`10 min` is not a duration",
        "\"10m\"",
    );
    let gates = |line: &str| format!("[reboot.gates]\n{line}\n");
    refused(
        &gates("hook_limit = \"2h\""),
        (3, 14, 4),
        "2h is not between 1s and 1h",
        "",
    );
    refused(
        &gates("windows = [\"Mo 10:00-11:00\"]"),
        (3, 12, 16),
        "`Mo`, which is no day",
        "Mon-Fri 22:00-06:00",
    );
    for text in ["Berlin", "CET", "Europe/../x"] {
        refused(
            &gates(&format!("time_zone = \"{text}\"")),
            (3, 13, text.len() + 2),
            "not a time zone of a policy",
            "Europe/Berlin",
        );
    }
    let reboot = |line: &str| format!("[reboot]\n{line}\n");
    refused(
        &reboot("delay = \"9s\""),
        (3, 9, 4),
        "9s is not between 10s and 24h",
        "at once",
    );
    refused(
        &reboot("delay = \"25h\""),
        (3, 9, 5),
        "25h is not between 10s and 24h",
        "",
    );
    refused(
        &reboot("message = \"two\\nlines\""),
        (3, 11, 12),
        "not a message for terminals",
        "one line of plain ASCII",
    );
    refused(
        &gates("stop_file = \"stop\""),
        (3, 13, 6),
        "not an absolute path",
        "/etc/gdr-agent/stop",
    );
    let gbps = |value: &str| format!("[verify.bandwidth]\nmin_gbps = {value}\n");
    refused(&gbps("0"), (3, 12, 1), "0 is not between 0.1 and 10000", "");
    refused(&gbps("inf"), (3, 12, 3), "must be finite", "");
    refused(&gbps("nan"), (3, 12, 3), "must be finite", "");
}

#[test]
fn texts_that_would_reach_a_file_or_an_argv() {
    let set = |arg: &str| format!("[kernel]\nset = [\"quiet\", \"{arg}\"]\n");
    refused(
        &set("a b"),
        (3, 17, 5),
        "has a space in it",
        "its own entry",
    );
    refused(&set("pci=x;y"), (3, 17, 9), "has `;` in it", "acs.method");
    refused(&set("a=$(id)"), (3, 17, 9), "has `$` in it", "");
    refused(&set("a\\nb"), (3, 17, 6), "has a line break in it", "");
    refused(&set("--"), (3, 17, 4), "starts with `-`", "init");
    refused(&set(""), (3, 17, 2), "cannot be empty", "");
    refused(&set("=x"), (3, 17, 4), "has no name", "");
    refused(
        &set(&"a".repeat(257)),
        (3, 17, 259),
        "257 bytes is too long",
        "",
    );
    let package = |name: &str| format!("[peermem]\npackage = \"{name}\"\n");
    refused(
        &package("-y"),
        (3, 11, 4),
        "starts with `-`",
        "letter or a digit",
    );
    refused(&package("a&b"), (3, 11, 5), "has `&` in it", "");
    let gpu = |text: &str| format!("[devices]\ngpu = [\"{text}\"]\n");
    refused(
        &gpu("10de:*"),
        (3, 8, 8),
        "is not a device selector",
        "10de:*/0302",
    );
    refused(
        &gpu("*:*/*"),
        (3, 8, 7),
        "every vendor and class",
        "name the vendor",
    );
}

#[test]
fn kernel_arguments_that_the_agent_owns() {
    for (arg, name) in [
        ("root=/dev/sda1", "root"),
        ("init=/bin/sh", "init"),
        ("rdinit=/bin/sh", "rdinit"),
        ("panic=0", "panic"),
        ("panic", "panic"),
        ("gdr.txn=1", "gdr.txn"),
        ("BOOT_IMAGE=/vmlinuz", "BOOT_IMAGE"),
        ("BOOT-IMAGE=/vmlinuz", "BOOT-IMAGE"),
        ("initrd=/x", "initrd"),
    ] {
        for key in ["set", "remove"] {
            let text = format!("[kernel]\n{key} = [\"{arg}\"]\n");
            let at = (3, key.len() + 5, arg.len() + 2);
            let found = refused(
                &text,
                at,
                &format!("`{name}` may be neither set nor removed"),
                "",
            );
            assert!(found.help.is_some());
        }
    }
    // Neighbours in name are free.
    let free =
        "version = 1\n[kernel]\nset = [\"rootflags=ro\", \"initcall_debug\", \"panic_print=1\"]";
    assert!(crate::load(free).is_ok());
}

#[test]
fn keys_that_contradict_each_other() {
    refused(
        "[kernel]\nset = [\"a-b=1\"]\nremove = [\"x\", \"a_b\"]\n",
        (4, 16, 5),
        "`a_b` is both set and removed",
        "leave it out",
    );
    refused(
        "[verify]\nrequire = [\"acs\"]\nwarn = [\"link\", \"acs\"]\n",
        (4, 17, 5),
        "`acs` is both required and only warned about",
        "",
    );
    // Against a default, the place is what the file says.
    refused(
        "[verify]\nwarn = [\"acs\"]\n",
        (3, 9, 5),
        "`acs` is both required",
        "",
    );
    refused(
        "[acs]\nclear = [\"RR\", \"CR\", \"RR\"]\n",
        (3, 22, 4),
        "`RR` is listed twice",
        "",
    );
    refused(
        "[kernel]\nset = [\"a_b\", \"a-b\"]\n",
        (3, 15, 5),
        "listed twice",
        "",
    );
    refused(
        "[devices]\nnic = []\n",
        (3, 7, 2),
        "matches no device",
        "default",
    );
    refused(
        "[devices]\nnic = [\"10DE:*/0302\"]\n",
        (3, 8, 13),
        "a GPU and a NIC at once",
        "",
    );
    refused(
        "[reboot]\ncoordinator = \"fleetlock\"\n",
        (3, 15, 11),
        "needs the server's URL",
        "[reboot.fleetlock]",
    );
    refused(
        "[reboot.fleetlock]\ngroup = \"a\"\n",
        (2, 9, 9),
        "lacks reboot.fleetlock.url",
        "url =",
    );
    refused(
        "[verify.bandwidth]\n",
        (2, 9, 9),
        "lacks verify.bandwidth.min_gbps",
        "Gbit/s",
    );
    refused(
        "[verify]\nrequire = [\"bandwidth\"]\n",
        (3, 12, 11),
        "how much is enough",
        "min_gbps",
    );
}

#[test]
fn repeated_values_of_one_name_are_legal() {
    let text =
        "version = 1\n[kernel]\nset = [\"console=tty0\", \"console=ttyS0\", \"pci=noaer\"]\n";
    assert!(crate::load(text).is_ok());
}

#[test]
fn fleetlock_urls() {
    let url = |url: &str| format!("[reboot.fleetlock]\nurl = \"{url}\"\n");
    refused(
        &url("ftp://h/"),
        (3, 7, 10),
        "does not start with http://",
        "",
    );
    refused(&url("https://"), (3, 7, 10), "no valid host", "");
    refused(&url("https://h:0/"), (3, 7, 14), "no valid port", "");
    refused(&url("https://h:99999/"), (3, 7, 18), "no valid port", "");
    refused(&url("https://h/a?b"), (3, 7, 15), "has `?` in its path", "");
    refused(&url("https://h/\\u001b"), (3, 7, 18), "U+001B", "");
    let found = refused(
        &url("https://me:secret@h/"),
        (3, 7, 22),
        "a password is refused",
        "",
    );
    assert!(!found.message.contains("secret"));
    let group = "[reboot.fleetlock]\nurl = \"https://h/\"\ngroup = \"a b\"\n";
    refused(group, (4, 9, 5), "is not a FleetLock group", "");
}

#[test]
fn version_is_required_and_must_be_ours() {
    let missing = errors("[acs]\nscope = \"all\"\n");
    assert_eq!(
        (missing.len(), missing[0].line, missing[0].column),
        (1, 1, 1)
    );
    assert_eq!(missing[0].message, "version is missing");
    assert!(missing[0].help.as_deref().unwrap().contains("version = 1"));
    assert_eq!(errors("")[0].message, "version is missing");
    let other = errors("# x\nversion = 2\n");
    assert_eq!((other.len(), other[0].line, other[0].column), (1, 2, 11));
    assert_eq!(other[0].message, "policy version 2 is not supported");
    assert!(other[0].help.as_deref().unwrap().contains("version = 1"));
}

#[test]
fn a_drop_in_may_repeat_the_version_but_not_replace_it() {
    let main = source("policy.toml", "version = 1\n");
    let same = source("a.toml", "version = 1\n");
    assert!(load(&[main.clone(), same.clone()]).is_ok());
    let found = load(&[main, source("b.toml", "version = 2\n")]).unwrap_err();
    assert_eq!(
        (found.0.len(), found.0[0].file.as_str(), found.0[0].line),
        (1, "b.toml", 1)
    );
    let found = load(&[source("policy.toml", ""), same]).unwrap_err();
    assert_eq!(found.0[0].message, "version is missing");
}

#[test]
fn syntax_errors_do_not_hide_other_mistakes() {
    let text =
        "version = 1\n[kernel]\niommu = off\niomu = 1\n[gdr\npath = \"x\"\n[acs]\nscop = 1\n";
    let found = errors(text);
    let places: Vec<(usize, bool)> = found
        .iter()
        .map(|found| (found.line, found.message.starts_with("TOML syntax: ")))
        .collect();
    assert_eq!(
        places,
        [(3, true), (4, false), (5, true), (8, false)],
        "{found:#?}"
    );
}

#[test]
fn what_is_defined_twice() {
    refused(
        "[gdr]\npath = \"auto\"\npath = \"auto\"\n",
        (4, 1, 4),
        "key `path` is defined twice",
        "line 3",
    );
    refused(
        "[gdr]\n[acs]\n[gdr]\n",
        (4, 2, 3),
        "table `gdr` is defined twice",
        "line 2",
    );
    let found = error("gdr.path = \"auto\"\n[gdr]\n");
    assert_eq!((found.line, found.column), (3, 2), "{found:#?}");
}

#[test]
fn all_errors_of_all_files_at_once_in_order() {
    let sources = [
        source(
            "policy.toml",
            "version = 1\n[trial]\npanic = 0\nbake = \"x\"\ndeadline = \"1s\"\n",
        ),
        source("d/10.toml", "[acs]\nscope = 1\n[nope]\n"),
        source("d/20.toml", "x = [\n"),
    ];
    let found = load(&sources).unwrap_err();
    let places: Vec<(&str, usize)> = found
        .iter()
        .map(|found| (found.file.as_str(), found.line))
        .collect();
    assert_eq!(
        places[..5],
        [
            ("policy.toml", 3),
            ("policy.toml", 4),
            ("policy.toml", 5),
            ("d/10.toml", 2),
            ("d/10.toml", 3),
        ]
    );
    assert_eq!(places[5].0, "d/20.toml");
}

#[test]
fn one_bad_entry_does_not_hide_the_others() {
    let text = "version = 1\n[kernel]\nset = [\n\"a;b\",\n\"init=/x\",\n\"q\",\n\"q\",\n\"r\",\n]\nremove = [\n\"$\",\n\"r\",\n]\n";
    let found = errors(text);
    let lines: Vec<usize> = found.iter().map(|found| found.line).collect();
    assert_eq!(lines, [4, 5, 7, 11, 12], "{found:#?}");
    assert!(found[4].message.contains("both set and removed"));
}

/// A refused value is reported once, and not again by what depends on it.
#[test]
fn no_error_follows_from_another() {
    refused(
        "[verify]\nrequire = [\"acx\"]\nwarn = [\"acs\"]\n",
        (3, 12, 5),
        "`acx`",
        "`acs`?",
    );
    let text = "[reboot]\ncoordinator = \"fleetlock\"\n[reboot.fleetlock]\nurl = \"x\"\n";
    refused(text, (5, 7, 3), "does not start with", "");
}

#[test]
fn text_that_is_no_text() {
    let one = |text: Vec<u8>| {
        let sources = [Source {
            name: "policy.toml".to_owned(),
            text,
        }];
        let found = load(&sources).unwrap_err();
        assert_eq!(found.0.len(), 1, "{found}");
        found.0[0].clone()
    };
    let nul = one(b"version = 1\nab\0c\n".to_vec());
    assert_eq!((nul.line, nul.column), (2, 3));
    assert!(nul.message.contains("NUL byte"));
    let latin = one(b"version = 1\n# caf\xe9\n".to_vec());
    assert_eq!((latin.line, latin.column), (2, 6));
    assert!(latin.message.contains("not UTF-8"));
    let elf = one(b"\x7fELF\x02\x01\x01\0\0\xff".to_vec());
    assert!(elf.message.contains("NUL byte"));
    let large = one(vec![b'['; 10_000_000]);
    assert!(large.message.contains("10000000 bytes"), "{large}");
}

#[test]
fn the_largest_policy_is_still_read() {
    let mut text = SAMPLE.to_owned();
    text.push_str(&"#".repeat(MAX_SIZE - text.len()));
    assert!(crate::load(&text).is_ok());
    text.push('#');
    assert_eq!(errors(&text).len(), 1);
}

#[test]
fn a_file_of_mistakes_ends_in_a_count() {
    let text: String = (0..50_000)
        .map(|index| format!("k{index} = {index}\n"))
        .collect();
    let found = errors(&format!("version = 1\n{text}"));
    assert_eq!(found.len(), 101);
    assert!(
        found[100].message.contains("49900 more problems"),
        "{}",
        found[100]
    );
}

#[test]
fn odd_but_valid_policies_warn() {
    let warned = |text: &str| {
        let loaded = crate::load(&format!("version = 1\n{text}")).unwrap();
        assert_eq!(loaded.warnings.0.len(), 1, "{}", loaded.warnings);
        let one = loaded.warnings.0[0].clone();
        assert_eq!(one.severity, Severity::Warning);
        (one.line, one.column, one.message)
    };
    let (line, column, message) = warned("[acs]\nscope = \"keep\"\n");
    assert_eq!((line, column), (3, 9));
    assert!(message.contains("acs is required"), "{message}");
    let (line, column, message) = warned("[kernel]\nset = [\"iommu=pt\"]\n");
    assert_eq!((line, column), (3, 8));
    assert!(message.contains("kernel.iommu both decide"), "{message}");
}

#[test]
fn no_sources_at_all() {
    assert!(load(&[]).unwrap_err().has_errors());
}

/// Files that would hang the test if each mistake cost a look at the whole file.
#[test]
fn large_files_full_of_mistakes_stay_bounded() {
    let pieces = [
        "[",
        "[[a]]\n",
        "[a]\n",
        "a=1\n",
        "a.b=1\n",
        "x\n",
        "=",
        "\"",
        "'''",
        "{",
        "a.",
        "[x\n",
        "a=[",
        "1,",
        "\\",
        "\u{1b}",
        "a={b=1,",
        "\r",
        "é",
        "kernel.set=['a;',",
        "[kernel]\nset=['-']\n",
    ];
    for piece in pieces {
        let text = piece.repeat(MAX_SIZE / 4 / piece.len());
        let found = errors(&format!("version = 1\n{text}"));
        assert!(
            !found.is_empty() && found.len() <= 102,
            "{piece:?}: {}",
            found.len()
        );
    }
    let unknown: String = (0..20_000).map(|index| format!("k{index}=0,")).collect();
    let found = errors(&format!("version = 1\nkernel = {{{unknown} }}\n"));
    assert_eq!(found.len(), 101);
}

/// Who else reboots a node has a warning of its own, or none.
#[test]
fn a_warning_before_a_reboot_is_for_those_who_go_through_logind() {
    let fleet = "[reboot.fleetlock]\nurl = \"https://lock.example/\"\n";
    for (coordinator, warns) in [
        ("logind", 0),
        ("fleetlock", 0),
        ("rebootmgr", 2),
        ("sentinel", 2),
        ("none", 2),
    ] {
        let text = format!(
            "version = 1\n[reboot]\ncoordinator = \"{coordinator}\"\ndelay = \"10m\"\nmessage = \"x\"\n{fleet}"
        );
        let loaded = load(&[source("policy.toml", &text)]).unwrap();
        assert_eq!(
            loaded.warnings.0.len(),
            warns,
            "{coordinator}: {}",
            loaded.warnings
        );
        assert!(
            loaded
                .warnings
                .0
                .iter()
                .all(|w| w.message.contains(coordinator))
        );
    }
}
