//! How much memory reading takes, and that nesting ends in an error and not in the stack.
#![allow(clippy::unwrap_used, reason = "tests panic")]

use std::fmt::Write;

use grub_config_parser::cfg::{Context, Script};
use grub_config_parser::cmdline::CommandLine;
use grub_config_parser::defaults::{Document, File, evaluate};
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

// One test: the peak is that of the whole process.
#[test]
fn memory_and_nesting_are_bounded() {
    let real = menu(1 << 20);
    let parse = |text: &[u8]| {
        Script::parse(text).unwrap();
    };
    let run = |text: &[u8]| {
        let script = Script::parse(text).unwrap();
        assert!(script.menu(&Context::default()).entries.len() > 100);
    };
    let parsed = times(&real, parse);
    let ran = times(&real, run);
    println!("grub.cfg: parsed {parsed:.1}, run {ran:.1} times its size");
    assert!(parsed < 10.0, "{parsed}");
    // With everything that the menu tells of every entry.
    assert!(ran < 13.0, "{ran}");

    // The densest text that there is: a command for each two bytes.
    for dense in ["a\n", "a;", "$a ", "a b ", "'' ", "{};"] {
        let text = dense.repeat((1 << 20) / dense.len());
        let parsed = times(text.as_bytes(), |text| drop(Script::parse(text)));
        println!("{dense:?}: {parsed:.1} times");
        assert!(parsed < 60.0, "{dense:?}: {parsed}");
    }

    let shell = "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX a=1\" # why\n".repeat(400);
    let evaluated = times(shell.as_bytes(), |text| {
        let doc = Document::parse(text);
        let file = File {
            name: "grub",
            doc: &doc,
        };
        assert_eq!(evaluate(&[file]).aborts, None);
    });
    println!("defaults: {evaluated:.1} times");

    let small = std::thread::Builder::new().stack_size(1 << 20);
    small.spawn(nesting).unwrap().join().unwrap();
}

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
