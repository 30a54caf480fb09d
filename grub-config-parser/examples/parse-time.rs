//! Prints how long it takes to read a `grub.cfg` of one megabyte, as a median, in microseconds: once
//! parsed, and once parsed and run to its menu.
//!
//! ```text
//! parse-time [RUNS]
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a program for the command line, not part of the library"
)]

use std::fmt::Write;
use std::time::Instant;

use grub_config_parser::cfg::{Context, Script};

fn main() {
    let runs = std::env::args().nth(1).and_then(|runs| runs.parse().ok());
    let text = menu(1 << 20);
    let parse = median(runs.unwrap_or(50), || {
        std::hint::black_box(Script::parse(&text).is_ok());
    });
    let whole = median(runs.unwrap_or(50).min(10), || {
        if let Ok(script) = Script::parse(&text) {
            std::hint::black_box(script.menu(&Context::default()));
        }
    });
    println!("parse {parse}\nmenu {whole}");
}

/// A file as `grub-mkconfig` writes it, with as many kernels as make it so long.
fn menu(bytes: usize) -> Vec<u8> {
    let mut text = String::from("set default=0\nload_env\nsubmenu 'Advanced options' --id adv {\n");
    let mut kernel = 0;
    while text.len() < bytes {
        kernel += 1;
        let entry = writeln!(
            text,
            "\tmenuentry 'Debian GNU/Linux, with Linux 6.1.0-{kernel}-amd64' --class debian --class gnu-linux \
             --class os $menuentry_id_option 'gnulinux-6.1.0-{kernel}-amd64-advanced-4f3c' {{\n\
             \t\tload_video\n\t\tinsmod gzio\n\
             \t\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi\n\
             \t\tinsmod part_gpt\n\t\tinsmod ext2\n\
             \t\tif [ x$feature_platform_search_hint = xy ]; then\n\
             \t\t  search --no-floppy --fs-uuid --set=root --hint-efi=hd0,gpt2  4f3c\n\t\telse\n\
             \t\t  search --no-floppy --fs-uuid --set=root 4f3c\n\t\tfi\n\
             \t\techo\t'Loading Linux 6.1.0-{kernel}-amd64 ...'\n\
             \t\tlinux\t/vmlinuz-6.1.0-{kernel}-amd64 root=UUID=4f3c ro console=tty0 console=ttyS0,115200 quiet\n\
             \t\techo\t'Loading initial ramdisk ...'\n\
             \t\tinitrd\t/initrd.img-6.1.0-{kernel}-amd64\n\t}}",
        );
        if entry.is_err() {
            break;
        }
    }
    text.push_str("}\n");
    text.into_bytes()
}

fn median(runs: usize, mut work: impl FnMut()) -> u128 {
    let mut times: Vec<u128> = (0..runs.max(1))
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_micros()
        })
        .collect();
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or(0)
}
