//! What colours, marks and words mean.

use super::place::{MARGIN, SMALL};
use super::scene::{Label, Rect, Scene};
use super::text::words_width;

/// A swatch's class, what is written in it, and what it means.
const SWATCHES: &[(&str, &str, &str)] = &[
    ("gpu", "", "GPU"),
    ("nic", "", "NIC"),
    ("bad", "!", "redirects peer traffic to the root complex"),
    ("good", "", "direct: no port on the way redirects"),
    ("unknown", "?", "unknown: could not be read"),
    ("aside", "", "does not decide about a path"),
    ("cell near", "", "no NIC is nearer to this GPU"),
];

/// Words, a line each.
const WORDS: &[&str] = &[
    "Where a GPU's column crosses a NIC's row: their path. PIX one switch, PXB several switches, PHB one host bridge, NODE other host bridge of the same NUMA node, SYS other NUMA node.",
    "ACS bits that redirect: RR requests, CR completions, EC egress control. Others: SV source validation, TB translation blocking, UF upstream forwarding, DT direct translated.",
    "x8 of 16: fewer lanes than the device has. GPUs and NICs are numbered in the order of their addresses.",
];

const LINE: i32 = 18;
const SWATCH: i32 = 22;

/// Draws it from `top` on, within the scene's width; answers where it ends.
pub(super) fn draw(scene: &mut Scene, top: i32) -> i32 {
    let right = scene.width - MARGIN;
    let (mut x, mut y) = (MARGIN, top);
    scene.open(
        "legend".to_owned(),
        "legend".to_owned(),
        "Legend".to_owned(),
    );
    for (class, mark, text) in SWATCHES {
        let wide = SWATCH + 6 + words_width(text, SMALL);
        if x + wide > right && x > MARGIN {
            (x, y) = (MARGIN, y + LINE);
        }
        let rect = Rect {
            x,
            y,
            w: SWATCH,
            h: 14,
        };
        scene.open((*class).to_owned(), String::new(), (*text).to_owned());
        scene.rect(rect, 3, "b");
        scene.centred(rect, y + 11, mark, SMALL);
        scene.close();
        scene.text(label(x + SWATCH + 6, y + 11, (*text).to_owned()));
        x += wide + 14;
    }
    y += LINE;
    for words in WORDS {
        for line in wrapped(words, right - MARGIN) {
            scene.text(label(MARGIN, y + 11, line));
            y += LINE - 4;
        }
    }
    scene.close();
    y
}

fn label(x: i32, y: i32, text: String) -> Label {
    Label {
        x,
        y,
        text,
        size: SMALL,
        class: "note",
    }
}

/// Lines of at most this many pixels.
fn wrapped(text: &str, limit: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if words_width(&format!("{line} {word}"), SMALL) <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
