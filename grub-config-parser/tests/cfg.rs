//! What a menu tells of its entries.
#![allow(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests read files and panic"
)]

mod common;

use std::collections::BTreeMap;

use grub_config_parser::cfg::{Context, Script, quote};
use grub_config_parser::cmdline::Arg;
use proptest::prelude::*;

const DEBIAN: &str = r#"
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
if [ x"${feature_menuentry_id}" = xy ]; then
  menuentry_id_option="--id"
else
  menuentry_id_option=""
fi
export menuentry_id_option
function load_video {
  insmod all_video
}
set superusers="root"
set timeout=5
menuentry 'Debian GNU/Linux' --class debian --class os --unrestricted $menuentry_id_option 'simple' {
	load_video
	insmod gzio
	if [ x$grub_platform = xxen ]; then insmod xzio; fi
	insmod part_gpt
	insmod ext2
	set root='hd0,gpt2'
	if [ x$feature_platform_search_hint = xy ]; then
	  search --no-floppy --fs-uuid --set=root --hint-bios=hd0,gpt2 0a1b-2c3d
	else
	  search --no-floppy --fs-uuid --set=root other
	fi
	echo	'Loading Linux ...'
	linux	/boot/vmlinuz-6.1 root=UUID=0a1b-2c3d ro  quiet "a=b c"
	echo	'Loading initial ramdisk ...'
	initrd	/boot/early.img /boot/initrd.img-6.1
}
submenu 'Advanced' $menuentry_id_option 'adv' {
	menuentry 'Debian, recovery' --users "a b" $menuentry_id_option 'rec' {
		linux /boot/vmlinuz-6.1 root=UUID=0a1b-2c3d ro single
	}
}
if [ -f  ${config_directory}/custom.cfg ]; then
  source ${config_directory}/custom.cfg
elif [ -z "${config_directory}" -a -f  $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
"#;

#[test]
fn a_debian_menu_tells_all_that_a_trial_entry_needs() {
    let script = Script::parse(DEBIAN.as_bytes()).unwrap();
    let menu = script.menu(&Context::default());
    assert_eq!(menu.default, Some(0));
    assert_eq!(menu.superusers.as_deref(), Some("root"));
    assert_eq!(menu.timeout.as_deref(), Some("5"));
    assert_eq!(
        menu.sources,
        ["${config_directory}/custom.cfg", "$prefix/custom.cfg"]
    );
    assert!(menu.loads_env && !menu.uses_blscfg);
    let entry = &menu.entries[0];
    assert_eq!(
        (entry.id.as_str(), entry.kernel.as_deref()),
        ("simple", Some("/boot/vmlinuz-6.1"))
    );
    assert_eq!(entry.classes, ["debian", "os"]);
    assert!(entry.unrestricted && entry.users.is_none());
    assert_eq!(entry.initrds, ["/boot/early.img", "/boot/initrd.img-6.1"]);
    assert_eq!(entry.raw, "root=UUID=0a1b-2c3d ro quiet \"a=b c\"");
    assert_eq!(
        entry.preamble(),
        [
            "insmod all_video",
            "insmod gzio",
            "insmod part_gpt",
            "insmod ext2",
            "set root=hd0,gpt2",
            "search --no-floppy --fs-uuid --set=root --hint-bios=hd0,gpt2 0a1b-2c3d",
        ]
    );
    assert_eq!(entry.root_search().fs_uuid.as_deref(), Some("0a1b-2c3d"));
    assert_eq!(entry.root_search().device.as_deref(), Some("hd0,gpt2"));
    let line = entry.linux_line.as_ref().unwrap();
    assert_eq!(
        DEBIAN
            .lines()
            .nth(line.line - 1)
            .unwrap()
            .split('\t')
            .nth(1),
        Some("linux")
    );
    assert_eq!(
        &DEBIAN[line.args_span.clone()],
        "root=UUID=0a1b-2c3d ro  quiet \"a=b c\""
    );
    let recovery = &menu.entries[1];
    assert_eq!(*recovery.submenu_path, ["Advanced"]);
    assert_eq!(recovery.users.as_deref(), Some("a b"));
    assert_eq!(
        recovery.cmdline.last("single").map(Arg::raw),
        Some("single")
    );
}

#[test]
fn the_environment_block_counts_once_it_is_loaded() {
    let script = Script::parse(DEBIAN.as_bytes()).unwrap();
    let env = BTreeMap::from([("next_entry".to_string(), "adv>rec".to_string())]);
    assert_eq!(
        script.menu(&Context::with_env(env.clone())).default,
        Some(1)
    );
    let unread = Script::parse(DEBIAN.replace("  load_env\n", "  true\n").as_bytes()).unwrap();
    assert_eq!(unread.menu(&Context::with_env(env)).default, Some(0));
}

#[test]
fn a_hook_that_disarms_itself_boots_its_entry_once() {
    let hook = "load_env\nset default=0\nmenuentry good { linux /g; }\nmenuentry trial { linux /t; }\n\
        if [ \"${trial}\" = tx ]; then set trial=; save_env trial; set trial=unknown; load_env trial;\n\
        if [ -z \"${trial}\" ]; then set default=trial; fi; fi\n";
    let script = Script::parse(hook.as_bytes()).unwrap();
    let env = BTreeMap::from([("trial".to_string(), "tx".to_string())]);
    let written = Context {
        keep_saved: true,
        ..Context::with_env(env.clone())
    };
    assert_eq!(script.menu(&written).default, Some(1));
    assert_eq!(
        script.menu(&Context::with_env(env)).default,
        Some(0),
        "a disk that keeps nothing"
    );
    assert_eq!(script.menu(&Context::default()).default, Some(0));
}

#[test]
fn a_kernel_line_that_is_not_the_entrys_own_has_no_place() {
    let text = "function f { linux /k a; }\nmenuentry x { f; }\nmenuentry y { eval 'linux /k b'; }\n\
        menuentry z --source 'linux /k c'\nmenuentry e { linux /k; }\n";
    let menu = Script::parse(text.as_bytes())
        .unwrap()
        .menu(&Context::default());
    let raws: Vec<&str> = menu
        .entries
        .iter()
        .map(|entry| entry.raw.as_str())
        .collect();
    assert_eq!(raws, ["a", "b", "c", ""]);
    assert!(
        menu.entries[..3]
            .iter()
            .all(|entry| entry.linux_line.is_none())
    );
    let span = menu.entries[3]
        .linux_line
        .as_ref()
        .unwrap()
        .args_span
        .clone();
    assert_eq!(&text[..span.start], text.strip_suffix("; }\n").unwrap());
    assert!(span.is_empty());
}

#[test]
fn places_are_those_of_the_file_also_with_carriage_returns_and_comments_inside_words() {
    let text = "# c\r\nmenuentry a {\r\n\tlinux /k one \\\r\n# no\r\n two\r\n}\r\n";
    let menu = Script::parse(text.as_bytes())
        .unwrap()
        .menu(&Context::default());
    let entry = &menu.entries[0];
    // GRUB's reader drops carriage returns and the comment, and joins the lines.
    assert_eq!(entry.raw, "one two");
    let line = entry.linux_line.as_ref().unwrap();
    assert_eq!(line.line, 3);
    assert_eq!(&text[line.args_span.clone()], "one \\\r\n# no\r\n two");
}

#[test]
fn errors_name_their_line() {
    for (text, line) in [
        ("true\nmenuentry a {\n}\n", 3),
        ("true\n\nif true; then\n", 4),
        ("a='b\n\n", 1),
        ("echo $\n", 1),
        ("true\nfi\n", 2),
    ] {
        assert_eq!(
            Script::parse(text.as_bytes()).unwrap_err().line,
            line,
            "{text:?}"
        );
    }
}

proptest! {
    #[test]
    fn a_quoted_word_is_read_as_that_word(word in "[ -~\n\té]{0,12}") {
        let text = format!("menuentry {} {{ linux /k; }}\n", quote(&word));
        let script = Script::parse(text.as_bytes()).unwrap();
        let menu = script.menu(&Context::default());
        // A word that looks like an option is one.
        if !word.starts_with('-') {
            prop_assert_eq!(&menu.entries[0].title, &word);
        }
    }
}

#[test]
fn every_real_menu_can_be_run() {
    let mut entries = 0;
    for path in common::corpus_files("grub-cfg") {
        let text = std::fs::read(&path).unwrap();
        let Ok(script) = Script::parse(&text) else {
            continue;
        };
        let menu = script.menu(&Context::default());
        assert_eq!(
            menu.default.is_none(),
            menu.entries.is_empty(),
            "{}",
            path.display()
        );
        for entry in &menu.entries {
            if let Some(line) = &entry.linux_line {
                let written = String::from_utf8_lossy(&text[line.args_span.clone()]).into_owned();
                if !written.contains(['$', '"', '\'', '\\']) {
                    let words: Vec<&str> = written.split_ascii_whitespace().collect();
                    assert_eq!(entry.raw, words.join(" "), "{}", path.display());
                }
            }
            entries += 1;
        }
    }
    assert!(
        entries > 20 || std::env::var_os("GDR_CORPUS").is_none(),
        "{entries} entries"
    );
}

#[test]
fn blscfg_puts_its_entries_where_it_stands() {
    use grub_config_parser::bls::{Order, Snippet};
    use grub_config_parser::cfg::Bls;
    let text =
        b"load_env\nset tuned_params=\"isolcpus=1\"\nset default=\"${saved_entry}\"\nblscfg\n\
        menuentry Other --id other { linux /other; }\n";
    let files = vec![
        Snippet::parse(
            "m-6.1.conf",
            b"title Old\nlinux /vmlinuz-6.1\ninitrd /initrd-6.1\noptions $kernelopts quiet\n",
        ),
        Snippet::parse(
            "m-6.2.conf",
            b"title New\nlinux /vmlinuz-6.2\ninitrd /initrd-6.2 $tuned_initrd\noptions root=/dev/b ro $tuned_params\ngrub_users $grub_users\n",
        ),
    ];
    let env = [("kernelopts", "root=/dev/a ro"), ("saved_entry", "m-6.1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let menu = Script::parse(text).unwrap().menu(&Context {
        bls: Some(Bls {
            files,
            order: Order::Rpm,
        }),
        ..Context::with_env(env.into())
    });
    let seen: Vec<_> = menu
        .entries
        .iter()
        .map(|e| (e.id.as_str(), e.raw.as_str(), e.bls, e.unrestricted))
        .collect();
    assert_eq!(
        seen,
        [
            ("m-6.2", "root=/dev/b ro isolcpus=1", Some(1), false),
            ("m-6.1", "root=/dev/a ro quiet", Some(0), true),
            ("other", "", None, false),
        ]
    );
    assert_eq!(menu.entries[0].initrds, ["/initrd-6.2"]);
    assert_eq!(menu.entries[0].kernel.as_deref(), Some("/vmlinuz-6.2"));
    assert_eq!(menu.default, Some(1), "saved_entry names a file");
    assert_eq!(menu.default_place, 1);
    let nested = b"menuentry A { linux /a; }\nsubmenu S --id s { menuentry B { linux /b; }\nmenuentry C --id c { linux /c; } }\nset default=\"s>c\"\n";
    let menu = Script::parse(nested).unwrap().menu(&Context::default());
    assert_eq!((menu.default, menu.default_place), (Some(2), 1));
}

#[test]
fn a_default_that_begins_with_a_digit_is_a_number_or_an_id() {
    let text = b"menuentry A --id 1abc { linux /a; }\nmenuentry B --id 0def { linux /b; }\nset default=0def\n";
    let script = Script::parse(text).unwrap();
    let default = |ids_first: bool| {
        let context = Context {
            ids_first,
            ..Context::default()
        };
        script.menu(&context).default
    };
    assert_eq!(default(false), Some(0), "strtoul reads 0 and stops");
    assert_eq!(default(true), Some(1));
}
