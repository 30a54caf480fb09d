//! How much memory reading takes, and that nesting ends in an error and not in the stack.
#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests panic, and tell what they have measured"
)]

use std::fmt::Write;

use grub_config_parser::bls::Snippet;
use grub_config_parser::cfg::{Context, Script};
use grub_config_parser::cmdline::CommandLine;
use grub_config_parser::defaults::{Document, File, evaluate};
use grub_config_parser::grubenv::EnvBlock;
use peak_alloc::PeakAlloc;

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

/// How many times the input's size the work needs at most, the input not counted.
fn times(input: &[u8], work: impl FnOnce(&[u8])) -> f64 {
    let before = PEAK.current_usage();
    PEAK.reset_peak_usage();
    work(input);
    let peak = PEAK.peak_usage() - before;
    #[allow(clippy::cast_precision_loss)]
    let times = peak as f64 / input.len() as f64;
    times
}

/// A file as `grub-mkconfig` writes it.
fn menu(bytes: usize) -> Vec<u8> {
    let mut text = String::from("set default=0\nload_env\n");
    let mut kernel = 0;
    while text.len() < bytes {
        kernel += 1;
        writeln!(
            text,
            "menuentry 'Linux 6.1.0-{kernel}' --class debian $menuentry_id_option 'gnulinux-6.1.0-{kernel}' {{\n\
             \tinsmod part_gpt\n\tif [ x$feature_platform_search_hint = xy ]; then\n\
             \t  search --no-floppy --fs-uuid --set=root --hint-efi=hd0,gpt2  4f3c\n\tfi\n\
             \tlinux\t/vmlinuz-6.1.0-{kernel} root=UUID=4f3c ro console=tty0 console=ttyS0,115200 quiet\n\
             \tinitrd\t/initrd.img-6.1.0-{kernel}\n}}"
        )
        .unwrap();
    }
    text.into_bytes()
}

/// Fills a quarter of a megabyte with this text, `#` in it being a number that is never the same.
fn fill(piece: &str) -> Vec<u8> {
    let mut text = String::with_capacity(1 << 18);
    let mut number = 0;
    while text.len() < 1 << 18 {
        text.push_str(&piece.replace('#', &format!("{number:x}")));
        number += 1;
    }
    text.into_bytes()
}

/// The densest texts that there are: as many nodes, words, entries, variables or lines as will go into each
/// byte. `@` stands for a `#`.
const DENSE: &[&str] = &[
    "a\n",
    "a;",
    "a;\n",
    "a\r\n",
    "a;\r",
    "\r\n",
    "\n",
    "a\0b\n",
    "\0\n",
    "'\n@'\n",
    "a{b\n};",
    "a{b\n}\n",
    "$a\n",
    "$a$a$a$a$a$a$a$a\n",
    "a b c d e f g h i\n",
    "'' '' '' ''\n",
    "''''''''''\n",
    "\"$a$a$a\"\n",
    "if a;then b;fi\n",
    "if a;then b;elif a;then b;else c;fi\n",
    "for a in;do b;done\n",
    "for a in b c d;do b;done\n",
    "while false;do b;done\n",
    "until true;do b;done\n",
    "function a {\nb\n}\n",
    "function f# {\nb\n}\n",
    "a#=\n",
    "a=#\n",
    "set a#=b\n",
    "export a#\n",
    "save_env a#\n",
    "eval a\n",
    "source a\n",
    ". a\n",
    "menuentry a{b\n}\n",
    "menuentry a {\nb\n}\n",
    "menuentry a{linux /k a\n}\n",
    "menuentry a{linux /k a b c d e f g h i j k l m\n}\n",
    "menuentry a{linux /k a=$a$b$c$d\n}\n",
    "menuentry a{a;a;a;a;a;a;a;a;a;a;a;a;a;a;a\n}\n",
    "menuentry a --class b --class c --class d{b\n}\n",
    "menuentry a --source b\n",
    "submenu a{b\n}\n",
    "submenu a{menuentry b{c\n}\n}\n",
    "submenu a{menuentry b{c\n}\nmenuentry b{c\n}\nmenuentry b{c\n}\n}\n",
    "@ a comment\n",
];

/// One entry with a body that is large, and one submenu with many entries.
fn large_bodies() -> Vec<Vec<u8>> {
    let around = |open: &str, piece: &str| {
        let inner = String::from_utf8(fill(piece)).unwrap();
        format!("{open}{{\n{inner}}}\n").into_bytes()
    };
    vec![
        around("menuentry a", "a;a\n"),
        around("menuentry a", "linux /k a b c d e f g\n"),
        around("menuentry a", "initrd a b c d e f g\n"),
        around("menuentry a", "search --set=root a\n"),
        around("submenu a", "menuentry b{c\n}\n"),
        around("submenu a", "submenu b{c\n}\n"),
        around("submenu a", "a#=b\n"),
    ]
}

/// What fills memory from a few bytes.
const GROWING: &[&str] = &[
    "while true; do menuentry a{b\n}\ndone\n",
    "a=aa\nwhile true; do a=\"$a$a\"; done\n",
    "a=aa\nwhile true; do a=\"${a}a\"; eval \"b$a=c\"; done\n",
    "a=a\nwhile true; do a=\"$a $a\"; for b in $a; do for c in $a; do true; done; done; done\n",
    "function f {\nf $@ $@ a\n}\nwhile true; do f a b c; done\n",
    "menuentry a {\nwhile true; do b; done\n}\n",
    "menuentry a {\nset b=b\nwhile true; do set b=$b$b\nlinux /k $b\ndone\n}\n",
    "a=a\nwhile true; do a=a$a; eval \"function $a { true; }\"; done\n",
    "submenu a {\nwhile true; do menuentry b{linux /k c\n}\ndone\n}\n",
];

// One test: the peak is that of the whole process.
#[test]
fn memory_and_nesting_are_bounded() {
    let real = menu(1 << 20);
    let parsed = times(&real, |text| drop(Script::parse(text).unwrap()));
    let ran = times(&real, |text| {
        let menu = Script::parse(text).unwrap().menu(&Context::default());
        assert!(menu.complete().unwrap().entries.len() > 2000);
    });
    println!("grub.cfg: parsed {parsed:.1}, run {ran:.1} times its size");
    let mut missed = Vec::new();
    // With everything that the menu tells of every entry.
    if parsed >= 5.0 || ran >= 10.0 {
        missed.push(format!("grub.cfg: parsed {parsed:.1}, run {ran:.1}"));
    }
    let dense = DENSE.iter().map(|piece| fill(piece)).chain(large_bodies());
    for mut text in dense {
        for byte in &mut text {
            if *byte == b'@' {
                *byte = b'#';
            }
        }
        let name = String::from_utf8_lossy(&text[..40.min(text.len())]).into_owned();
        let parsed = times(&text, |text| drop(Script::parse(text)));
        let mut told = String::new();
        let ran = times(&text, |text| {
            told = match Script::parse(text) {
                Ok(script) => format!("{:?}", script.menu(&Context::default()).incomplete),
                Err(error) => error.to_string(),
            };
        });
        println!("{name:?}: parsed {parsed:.1}, run {ran:.1} times, {told}");
        if parsed >= 10.0 || ran >= 10.0 {
            missed.push(format!("{name:?}: parsed {parsed:.1}, run {ran:.1}"));
        }
    }
    for text in GROWING {
        let before = PEAK.current_usage();
        PEAK.reset_peak_usage();
        let menu = Script::parse(text.as_bytes())
            .unwrap()
            .menu(&Context::default());
        let peak = PEAK.peak_usage() - before;
        println!("{text:?}: {peak} bytes, {:?}", menu.incomplete);
        assert!(menu.incomplete.is_some(), "{text:?}");
        if peak >= 3 << 19 {
            missed.push(format!("{text:?}: {peak} bytes"));
        }
    }
    // What fills memory in a loop of a shell file ends too.
    for text in [
        "while true; do GRUB_A=$GRUB_A$GRUB_A.; done\n",
        "while true; do GRUB_A=a; done\n",
        "while true; do eval \"GRUB_A$GRUB_B=a\"; GRUB_B=a$GRUB_B; done\n",
        "while true; do (GRUB_A=$GRUB_A$GRUB_A.; f() { :; }); done\n",
    ] {
        let peak = times(text.as_bytes(), |text| {
            let doc = Document::parse(text);
            evaluate(&[File {
                name: "f",
                doc: &doc,
            }]);
        });
        #[allow(clippy::cast_precision_loss, reason = "a few bytes")]
        let bytes = peak * text.len() as f64;
        println!("{text:?}: {bytes} bytes");
        if bytes >= f64::from(3 << 19) {
            missed.push(format!("{text:?}: {bytes} bytes"));
        }
    }
    other_formats(&mut missed);
    assert!(missed.is_empty(), "{missed:#?}");

    let small = std::thread::Builder::new().stack_size(1 << 20);
    small.spawn(nesting).unwrap().join().unwrap();
}

/// A format, how it is read, and its densest texts.
type Shape = (&'static str, fn(&[u8]), &'static [&'static str]);

/// What there is of each other format, the input's size times ten being too much.
fn other_formats(missed: &mut Vec<String>) {
    let defaults = |text: &[u8]| {
        let doc = Document::parse(text);
        evaluate(&[File {
            name: "grub",
            doc: &doc,
        }]);
    };
    let shapes: [Shape; 4] = [
        ("defaults", defaults, SHELL),
        ("bls", |text| drop(Snippet::parse("a.conf", text)), ENTRY),
        (
            "grubenv",
            |text| {
                let block = EnvBlock::parse(text).unwrap();
                let _ = block.iter().count();
            },
            BLOCK,
        ),
        (
            "cmdline",
            |text| drop(CommandLine::parse(core::str::from_utf8(text).unwrap())),
            LINE,
        ),
    ];
    for (format, read, pieces) in shapes {
        for piece in pieces {
            let mut text = fill(piece);
            if format == "grubenv" {
                text.splice(0..0, *b"# GRUB Environment Block\n");
            }
            // No kernel takes a longer line; ten times that, or what any input may take.
            let (text, most) = if format == "cmdline" {
                (&text[..1 << 14], 64.0)
            } else {
                (&text[..], 10.0)
            };
            let times = times(text, read);
            println!("{format} {piece:?}: {times:.1} times");
            if times >= most {
                missed.push(format!("{format} {piece:?}: {times:.1}"));
            }
        }
    }
}

const SHELL: &[&str] = &[
    "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX a=1\"\n",
    "GRUB_A=\"a=1 b=2 c=3\"\n",
    "GRUB_A#=\"a=1 b=2 c=3\"\n",
    "\n",
    ":\n",
    ":;",
    "A=\n",
    "A#=\n",
    "GRUB_#=\n",
    "GRUB_A=\n",
    "GRUB_A=$GRUB_A\n",
    "GRUB_A=$GRUB_A$GRUB_A\n",
    "GRUB_A=a$A$A$A$A$A$A\n",
    ": ''''''''\n",
    ": $A$A$A$A$A$A\n",
    ": a a a a a a a\n",
    ":||:||:\n",
    ":&&:\n",
    "{ :;}\n",
    "(:)\n",
    "if :;then :;fi\n",
    "case a in b) :;;esac\n",
    "f(){ :;}\n",
    "f#(){ :;}\n",
    ": $(:)\n",
    ": `:`\n",
    ": $((1))\n",
    ": ${A:-a}\n",
    ":>a\n",
    ": <<a\na\n",
    "[ a ]\n",
];

const ENTRY: &[&str] = &["a b\n", "options a\n", "a# b\n"];

const BLOCK: &[&str] = &["a=b\n", "a#=\n", "=\n", "#", "\n", "a=\\\\\n"];

const LINE: &[&str] = &["a ", "a=b ", "\"a\" ", "a=\"\" ", " "];

/// Runs on a small stack.
fn nesting() {
    let deep = 100_000;
    for open in [
        "if true; then\n",
        "menuentry a {\n",
        "while true; do ",
        "function f {\n",
        "for a in b; do ",
    ] {
        let error = Script::parse(open.repeat(deep).as_bytes()).unwrap_err();
        assert!(error.line > 0, "{error:?}");
    }
    // Closed too: still an error, or run to an end.
    for (open, close) in [("menuentry a {\n", "}\n"), ("if true; then\n", "fi\n")] {
        let text = open.repeat(deep) + "true\n" + &close.repeat(deep);
        if let Ok(script) = Script::parse(text.as_bytes()) {
            script.menu(&Context::default());
        }
    }
    for open in [
        "(",
        "{ ",
        "if true; then ",
        "$(",
        "`",
        "${A:-",
        "\"${A:-",
        "f() { ",
        "case a in b) ",
        "! ",
        "$((",
    ] {
        let doc = Document::parse(format!("GRUB_A={}", open.repeat(deep)).as_bytes());
        evaluate(&[File {
            name: "f",
            doc: &doc,
        }]);
        let doc = Document::parse(open.repeat(deep).as_bytes());
        evaluate(&[File {
            name: "f",
            doc: &doc,
        }]);
    }
    CommandLine::parse(&"\"a=".repeat(deep));
    // A value from thousands of places, again and again: ends in good time.
    let text = "A=$A\"a\"\n".repeat(5000) + &"B=$A\nA=$B\n".repeat(50_000);
    let doc = Document::parse(
        text.replace('A', "GRUB_A")
            .replace('B', "GRUB_B")
            .as_bytes(),
    );
    evaluate(&[File {
        name: "f",
        doc: &doc,
    }]);
}
