//! Menus against GRUB itself, as the emulator of the `grub-emu` package.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests start programs, read files and panic"
)]

mod common;

use std::process::{Command, Stdio};

use grub_config_parser::cfg::{Context, Script, loader_quote};
use proptest::prelude::*;

/// Stands for `linux`, which the emulator does not have: shows its arguments and ends GRUB.
const SHOW: &str = "function L {\nfor zz in \"$@\"; do echo \"<$zz>\"; done\necho LEND\nhalt\n}\n";

/// Boots a menu untouched; gives the arguments of the entry that it starts, if it starts one.
fn emulator(script: &str) -> Option<Vec<String>> {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("{SHOW}{}\nset timeout=0\n", script.replace("linux ", "L "));
    std::fs::write(dir.path().join("grub.cfg"), text).unwrap();
    let output = common::run(
        Command::new("timeout")
            .arg("5")
            .arg(common::program("grub-emu").unwrap())
            .args(["-m", "/dev/null", "-d"])
            .arg(dir.path())
            .stdin(Stdio::null()),
    );
    let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
    let (shown, _) = text.split_once("LEND")?;
    let args = shown.lines().filter_map(|line| {
        let start = line.find('<')?;
        line[start + 1..].strip_suffix('>').map(str::to_string)
    });
    Some(args.collect())
}

fn compare(text: &str) {
    let Ok(script) = Script::parse(text.as_bytes()) else {
        return;
    };
    let menu = script.menu(&Context::default());
    let Some(entry) = menu.default.map(|index| &menu.entries[index]) else {
        return;
    };
    let Some(kernel) = &entry.kernel else { return };
    let Some(args) = emulator(text) else { return };
    assert_eq!(
        (kernel, &entry.raw),
        (&args[0], &quoted(&args[1..])),
        "{text}"
    );
}

fn quoted(args: &[String]) -> String {
    loader_quote(args.iter().map(String::as_str))
}

#[test]
fn the_default_is_the_one_that_grub_boots() {
    if common::program("grub-emu").is_none() {
        return;
    }
    let menu = "menuentry 'A b' --id a { linux /a 1; }\nsubmenu 'S>t' --id s {\n\
        menuentry x { linux /sx 2; }\nsubmenu y { menuentry 'p>q' { linux /syp 3; }\n\
        menuentry z { linux /syz $1 $# \"$default\"; } }\n}\n\
        menuentry 2nd --id b extra { linux /b \"$2\" $chosen \"$default\"; }\n";
    let mut booted = 0;
    for default in [
        "0",
        "1",
        "2",
        "3",
        "a",
        "A b",
        "s",
        "S>>t",
        "S>>t>y",
        "s>x",
        "s>0",
        "s>1",
        "1>1>1",
        "s>y>z",
        "1>y>p>>q",
        "1>7",
        "b",
        "2nd",
        "b>x",
        "nope",
        "0x2",
        " 2",
        "2x",
        "-1",
        ">",
        "4294967298",
        "99999999999999999999",
        "01",
        "1>>2",
        "s>y>nope",
        "",
    ] {
        let text = format!("{menu}set default='{default}'\n");
        let own = Script::parse(text.as_bytes())
            .unwrap()
            .menu(&Context::default());
        let entry = &own.entries[own.default.unwrap()];
        let args = emulator(&text).unwrap();
        assert_eq!(entry.kernel.as_ref(), Some(&args[0]), "default {default:?}");
        assert_eq!(entry.raw, quoted(&args[1..]), "default {default:?}");
        booted += 1;
    }
    assert_eq!(booted, 31);
}

#[test]
fn words_functions_and_loops_do_what_they_do_in_grub() {
    if common::program("grub-emu").is_none() {
        return;
    }
    for (body, wanted) in [
        (
            "linux /k a\\ b 'c  d' \"e\\\"f\\x\" g\\\nh \"\" i",
            "/k \"a b\" \"c  d\" e\\\"f\\\\x gh  i",
        ),
        (
            "set v='p  q'; linux /k $v \"$v\" x$v\"y\" ${nope} \"${nope}\" z",
            "",
        ),
        (
            "for i in a 'b c'; do set l=\"$l <$i\"; done; linux /k $l \"$l\"",
            "",
        ),
        ("f 'q w' e; linux /k $r $? \"$2\"", ""),
        (
            "if [ x$a = x -a ! -f /x -o b ]; then linux /k y; else linux /k n; fi",
            "",
        ),
        (
            "if [ 010 -eq 8 ]; then if [ -2 -lt 1 ]; then if [ v-9 -plt v-10 ]; then linux /k y; fi; fi; fi",
            "",
        ),
        (
            "c=; while [ x$c != xppp ]; do c=p$c; if [ $c = pp ]; then continue; fi; l=\"$l $c\"; done; linux /k $l",
            "",
        ),
        (
            "for i in 1 2 3; do for j in 1 2; do if [ $i$j = 21 ]; then break 2; fi; l=\"$l $i$j\"; done; done; linux /k $l",
            "",
        ),
        ("eval \"set x='1 2'\"; eval linux /k '$x' \\'$x\\'", ""),
        ("setparams u 'v w'; shift; linux /k $# $@ \"$@\" \"$*\"", ""),
        ("linux /k $\"a $v \\\\ \\$ ${#} b\"", ""),
        ("! true; set r=$?; ! false; linux /k $r $?", ""),
    ] {
        let text = format!(
            "function f {{ set r=\"$1-$2-$#\"; return 3; }}\nmenuentry t u {{ {body}; }}\n"
        );
        compare(&text);
        if !wanted.is_empty() {
            let menu = Script::parse(text.as_bytes())
                .unwrap()
                .menu(&Context::default());
            let entry = &menu.entries[0];
            assert_eq!(
                format!("{} {}", entry.kernel.as_deref().unwrap(), entry.raw),
                wanted
            );
        }
    }
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(
        &[
            "x",
            "y=z",
            "'p q'",
            "''",
            "\"\"",
            "$a",
            "\"$a\"",
            "${b}",
            "\"<$b>\"",
            "$1",
            "\"$@\"",
            "$*",
            "\"$*\"",
            "$#",
            "$?",
            "x\\ y",
            "\\$a",
            "\\\\",
            "a\\\nb",
            "$\"t $a\"",
            "\"\\\\\\\"\\x\"",
            "x$a",
            "$a$b",
            "\"$a\"y",
            "--id",
            "$chosen",
        ][..],
    )
    .prop_map(str::to_string)
}

fn command() -> BoxedStrategy<String> {
    let set =
        (prop::sample::select(&["a", "b"][..]), word()).prop_map(|(n, w)| format!("set {n}={w}"));
    let simple = prop_oneof![
        4 => set,
        1 => word().prop_map(|w| format!("b={w}")),
        1 => prop::sample::select(&["a", "b"][..]).prop_map(|n| format!("export {n}")),
        1 => prop::sample::select(&["a", "b"][..]).prop_map(|n| format!("unset {n}")),
        2 => (word(), word()).prop_map(|(a, b)| format!("f {a} {b}")),
        1 => word().prop_map(|w| format!("setparams {w} q")),
        1 => Just("shift".to_string()),
        1 => Just("return 2".to_string()),
        1 => Just("break".to_string()),
        1 => Just("continue".to_string()),
        1 => Just("false".to_string()),
    ];
    let condition = prop_oneof![
        (word(), word()).prop_map(|(a, b)| format!("[ {a} = {b} ]")),
        word().prop_map(|w| format!("[ -n {w} ]")),
        word().prop_map(|w| format!("! [ {w} ]")),
        (word(), word()).prop_map(|(a, b)| format!("[ {a} -o {b} -lt 2 ]")),
        Just("f x".to_string()),
    ];
    simple
        .prop_recursive(2, 12, 3, move |inner| {
            let list = prop::collection::vec(inner, 1..3).prop_map(|items| items.join("; "));
            prop_oneof![
                (condition.clone(), list.clone(), list.clone())
                    .prop_map(|(c, a, b)| format!("if {c}; then {a}; else {b}; fi")),
                (word(), word(), list)
                    .prop_map(|(a, b, l)| format!("for a in {a} {b}; do {l}; done")),
            ]
        })
        .boxed()
}

#[test]
fn scripts_by_chance_boot_what_grub_boots() {
    if common::program("grub-emu").is_none() {
        return;
    }
    let list = |size| prop::collection::vec(command(), size).prop_map(|items| items.join("\n"));
    let words = prop::collection::vec(word(), 0..4).prop_map(|words| words.join(" "));
    let script = (list(1..2), list(0..5), list(0..2), words, any::<bool>());
    proptest!(common::cases(25), |((function, script, body, words, nested) in script)| {
        // `f` calls nobody, or it would never end.
        let function = function.replace("f ", "true ").replace("itrue ", "if ");
        let entry = format!("menuentry t 'u v' {{\n{body}\nlinux /k {words}\n}}\n").replace("\n\n", "\n");
        let entry = if nested { format!("submenu s {{ {script}\n{entry}}}\n") } else { entry };
        compare(&format!("function f {{ {function}; }}\n{script}\n{entry}"));
    });
}
