//! Boxes, lines and labels with their places: what layout makes and what becomes SVG.

use std::fmt::Write as _;

use super::text::{escaped, width};

/// Whole pixels; the picture is scaled as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rect {
    pub x: i32,
    pub y: i32,
    pub w: i32,
    pub h: i32,
}

impl Rect {
    pub(super) const fn right(self) -> i32 {
        self.x + self.w
    }

    pub(super) const fn middle(self) -> i32 {
        self.y + self.h / 2
    }
}

#[derive(Debug)]
enum Shape {
    Rect(Rect, i32, &'static str),
    Line(Vec<(i32, i32)>, &'static str),
    Text(Label),
    Open {
        class: String,
        about: String,
        title: String,
    },
    Close,
}

/// One line of text.
#[derive(Debug, Clone)]
pub(super) struct Label {
    pub x: i32,
    /// The base line.
    pub y: i32,
    pub text: String,
    pub size: i32,
    /// `m` is monospaced, `h` a heading, `note` in words.
    pub class: &'static str,
}

/// Shapes from back to front.
#[derive(Debug, Default)]
pub(super) struct Scene {
    shapes: Vec<Shape>,
    pub width: i32,
    pub height: i32,
}

impl Scene {
    pub(super) fn rect(&mut self, rect: Rect, round: i32, class: &'static str) {
        self.shapes.push(Shape::Rect(rect, round, class));
    }

    pub(super) fn line(&mut self, points: &[(i32, i32)], class: &'static str) {
        self.shapes.push(Shape::Line(points.to_vec(), class));
    }

    pub(super) fn text(&mut self, label: Label) {
        self.shapes.push(Shape::Text(label));
    }

    /// Text of one size in the middle of a width.
    pub(super) fn centred(&mut self, rect: Rect, y: i32, text: &str, size: i32) {
        self.text(Label {
            x: rect.x + (rect.w - width(text, size)) / 2,
            y,
            text: text.to_owned(),
            size,
            class: "m",
        });
    }

    /// What follows, up to [`Scene::close`], is one thing: `about` says which for programs,
    /// `title` describes it to people.
    pub(super) fn open(&mut self, class: String, about: String, title: String) {
        self.shapes.push(Shape::Open {
            class,
            about,
            title,
        });
    }

    pub(super) fn close(&mut self) {
        self.shapes.push(Shape::Close);
    }

    /// Another scene in front of this one.
    pub(super) fn append(&mut self, front: Self) {
        self.shapes.extend(front.shapes);
    }

    /// The shapes as SVG elements, one a line.
    pub(super) fn elements(&self) -> String {
        let mut out = String::new();
        for shape in &self.shapes {
            let _ = match shape {
                Shape::Rect(Rect { x, y, w, h }, round, class) => writeln!(
                    out,
                    "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"{round}\"/>"
                ),
                Shape::Line(points, class) => {
                    let points: Vec<String> =
                        points.iter().map(|(x, y)| format!("{x},{y}")).collect();
                    let points = points.join(" ");
                    writeln!(out, "<polyline class=\"{class}\" points=\"{points}\"/>")
                }
                Shape::Text(label) => text_element(&mut out, label),
                Shape::Open {
                    class,
                    about,
                    title,
                } => {
                    let (about, title) = (escaped(about), escaped(title));
                    writeln!(
                        out,
                        "<g class=\"{class}\" data-about=\"{about}\"><title>{title}</title>"
                    )
                }
                Shape::Close => writeln!(out, "</g>"),
            };
        }
        out
    }
}

/// `textLength` holds every monospaced font to the width that layout reckoned with; words are in a
/// proportional font and always narrower than that.
fn text_element(out: &mut String, label: &Label) -> std::fmt::Result {
    let Label {
        x,
        y,
        text,
        size,
        class,
    } = label;
    let held = if class.starts_with('m') {
        let length = width(text, *size);
        format!(" textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\"")
    } else {
        String::new()
    };
    let text = escaped(text);
    writeln!(
        out,
        "<text class=\"{class} s{size}\" x=\"{x}\" y=\"{y}\"{held}>{text}</text>"
    )
}
