//! Colours and fonts, light and dark. The colours are written out rather than named by custom
//! properties, which some viewers of SVG do not know.

use std::fmt::Write as _;

/// Text on fill, with an outline.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tone {
    class: &'static str,
    text: &'static str,
    fill: &'static str,
    stroke: &'static str,
}

/// Colours that fit each other.
#[derive(Debug)]
pub(super) struct Palette {
    pub page: &'static str,
    pub text: &'static str,
    note: &'static str,
    wire: &'static str,
    frame: &'static str,
    frame_line: &'static str,
    stripe: &'static str,
    attention: &'static str,
    tones: [Tone; 7],
    path_bad: Tone,
}

const fn tone(
    class: &'static str,
    text: &'static str,
    fill: &'static str,
    stroke: &'static str,
) -> Tone {
    Tone {
        class,
        text,
        fill,
        stroke,
    }
}

pub(super) const LIGHT: Palette = Palette {
    page: "#ffffff",
    text: "#1b1f24",
    note: "#4b535d",
    wire: "#8c959f",
    frame: "#f6f8fa",
    frame_line: "#b4bdc7",
    stripe: "#ffdd7a",
    attention: "#7a4b00",
    tones: [
        tone("host", "#1b1f24", "#e4e8ec", "#6e7781"),
        tone("gpu", "#0a3069", "#d8eefd", "#0969da"),
        tone("nic", "#3b1f7a", "#ece2ff", "#8250df"),
        tone("aside", "#3d444d", "#eceff2", "#8c959f"),
        tone("good", "#0b4a1f", "#d7f5de", "#2a8a41"),
        tone("bad", "#ffffff", "#c4211f", "#7d0f0d"),
        tone("unknown", "#4d3300", "#fff3cf", "#a87400"),
    ],
    path_bad: tone("bad", "#86150f", "#ffdbd7", "#c4211f"),
};

pub(super) const DARK: Palette = Palette {
    page: "#0d1117",
    text: "#e6edf3",
    note: "#aab4bf",
    wire: "#69727d",
    frame: "#151b23",
    frame_line: "#4a525c",
    stripe: "#553d00",
    attention: "#f0b83f",
    tones: [
        tone("host", "#e6edf3", "#2a313a", "#7d8590"),
        tone("gpu", "#c2e0ff", "#0c2d4d", "#388bfd"),
        tone("nic", "#e0d0ff", "#2f1d57", "#a371f7"),
        tone("aside", "#c9d1d9", "#21262d", "#6e7681"),
        tone("good", "#aef2bd", "#11361e", "#3fb950"),
        tone("bad", "#ffffff", "#c12a25", "#ff8078"),
        tone("unknown", "#ffe3a0", "#362800", "#d29922"),
    ],
    path_bad: tone("bad", "#ffc4bd", "#4d1613", "#f85149"),
};

/// What does not depend on the palette.
const SHAPES: &str = "\
.gdr .m{font-family:ui-monospace,\"DejaVu Sans Mono\",\"Liberation Mono\",Menlo,Consolas,monospace}
.gdr .h,.gdr .note{font-family:system-ui,\"DejaVu Sans\",\"Liberation Sans\",Helvetica,Arial,sans-serif}
.gdr .h,.gdr .s11{font-weight:600}
.gdr .s10{font-size:10px}.gdr .s11{font-size:11px}.gdr .s12{font-size:12px}.gdr .s17{font-size:17px}
.gdr .b{stroke-width:1}
.gdr .bad>.b,.gdr .unknown>.b{stroke-width:1.5}
.gdr .near>.b{stroke-width:2.5}
.gdr polyline{fill:none;stroke-width:1.2}
.gdr .wire{stroke-width:.8}
.gdr .gap{stroke-dasharray:4 3}
";

/// The style sheet of a picture.
pub(super) fn sheet() -> String {
    let mut css = String::from(SHAPES);
    colours(&mut css, &LIGHT);
    // Paper is light.
    css.push_str("@media screen and (prefers-color-scheme:dark){\n");
    colours(&mut css, &DARK);
    css.push_str(
        "}\n@media print{.gdr{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n",
    );
    css
}

/// The style sheet of the page around it.
pub(super) fn page() -> String {
    let mut css = String::from(PAGE);
    page_colours(&mut css, &LIGHT);
    css.push_str("@media screen and (prefers-color-scheme:dark){\n");
    page_colours(&mut css, &DARK);
    css.push_str("}\n");
    css.push_str(PRINT);
    css
}

const PAGE: &str = "\
:root{color-scheme:light dark}
body{margin:0;font:14px/1.45 system-ui,\"DejaVu Sans\",\"Liberation Sans\",Helvetica,Arial,sans-serif}
main{max-width:1500px;margin:0 auto;padding:8px 16px 32px}
h1,.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
h2{font-size:17px;margin:26px 0 8px 14px}
figure,.wide{margin:0;overflow-x:auto}
figure svg{display:block;max-width:100%;height:auto}
code{font-family:ui-monospace,\"DejaVu Sans Mono\",\"Liberation Mono\",Menlo,Consolas,monospace;font-size:.86em;white-space:nowrap}
small{font-size:.86em}
table{border-collapse:collapse;margin-left:14px}
caption{text-align:left;padding:0 0 6px}
th,td{border:1px solid;padding:3px 8px;text-align:left;vertical-align:top;font-weight:400}
thead th,th[scope=row]{font-weight:600}
strong{font-weight:800;text-decoration:underline}
.advice{margin:0 0 10px 14px;padding:8px 14px;border-left:6px solid}
.advice p{margin:0 0 6px;max-width:90ch}
.advice dl{margin:0 0 6px}.advice dt{display:inline-block;min-width:13em}.advice dd{display:inline;margin:0}
.advice ul{margin:0;padding:0;list-style:none;columns:22em;font-size:.93em}
@media screen{figure svg{min-width:820px}}
";

/// The picture has a sheet to itself.
const PRINT: &str = "\
@page{size:A4 landscape;margin:9mm}
@media print{body{font-size:11px}main{padding:0}figure{break-after:page;overflow:visible}figure svg{max-height:187mm;margin:auto}
.wide{overflow:visible}.wide,tr,.advice{break-inside:avoid}h2{break-after:avoid}
table{font-size:10px}.matrix{font-size:8.5px;margin-left:0}th,td{padding:2px 3px}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
";

fn page_colours(css: &mut String, palette: &Palette) {
    let Palette {
        page,
        text,
        frame,
        frame_line,
        stripe,
        ..
    } = palette;
    let _ = writeln!(
        css,
        "body{{background:{page};color:{text}}}th,td{{border-color:{frame_line}}}th{{background:{frame}}}"
    );
    for Tone {
        class,
        text,
        fill,
        stroke,
    } in palette.tones.iter().chain([&palette.path_bad])
    {
        let _ = writeln!(
            css,
            "td.{class},.advice.{class}{{background:{fill};color:{text};border-color:{stroke}}}"
        );
        if *class == "unknown" {
            let _ = writeln!(
                css,
                "td.{class}{{background:repeating-linear-gradient(135deg,{fill} 0 5px,{stripe} 5px 8px)}}"
            );
        }
    }
}

fn colours(css: &mut String, palette: &Palette) {
    let Palette {
        page,
        text,
        note,
        wire,
        frame,
        frame_line,
        stripe,
        attention,
        ..
    } = palette;
    let _ = write!(
        css,
        ".gdr .page{{fill:{page}}}.gdr text{{fill:{text}}}.gdr .note,.gdr .link{{fill:{note}}}
.gdr .narrow,.gdr .unread{{fill:{attention};font-weight:700}}
.gdr polyline,.gdr .cell>.b{{stroke:{wire}}}.gdr .dot{{fill:{wire}}}.gdr .gap{{stroke:{attention}}}
.gdr .frame{{fill:{frame};stroke:{frame_line}}}.gdr .switch{{fill:none;stroke:{wire};stroke-dasharray:2 2}}
.gdr .cell>.b{{fill:{page};stroke:{text}}}.gdr .stripe{{stroke:{stripe};stroke-width:3}}
"
    );
    for Tone {
        class,
        text,
        fill,
        stroke,
    } in &palette.tones
    {
        if *class == "unknown" {
            let _ = writeln!(css, ".gdr .ground{{fill:{fill}}}");
            let _ = writeln!(
                css,
                ".gdr .{class}>.b{{fill:url(#gdr-hatch);stroke:{stroke}}}.gdr .{class}>text{{fill:{text}}}"
            );
        } else {
            let _ = writeln!(
                css,
                ".gdr .{class}>.b{{fill:{fill};stroke:{stroke}}}.gdr .{class}>text{{fill:{text}}}"
            );
        }
    }
    let Tone {
        text, fill, stroke, ..
    } = palette.path_bad;
    let _ = writeln!(
        css,
        ".gdr .cell.bad>.b{{fill:{fill};stroke:{stroke}}}.gdr .cell.bad>text{{fill:{text}}}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of `#rrggbb` (WCAG 2).
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            match value <= 0.040_45 {
                true => value / 12.92,
                false => ((value + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// 4.5 is what small text needs at level AA, 3 what a line that means something needs.
    #[test]
    fn everything_can_be_read() {
        for palette in [&LIGHT, &DARK] {
            for Tone {
                class,
                text,
                fill,
                stroke,
            } in palette.tones.iter().chain([&palette.path_bad])
            {
                assert!(contrast(text, fill) >= 4.5, "{class} {text} on {fill}");
                assert!(
                    contrast(stroke, palette.frame) >= 3.0 || *class == "aside",
                    "{class} {stroke}"
                );
            }
            let unknown = palette
                .tones
                .iter()
                .find(|tone| tone.class == "unknown")
                .unwrap();
            assert!(contrast(unknown.text, palette.stripe) >= 4.5);
            for text in [palette.text, palette.note, palette.attention] {
                assert!(contrast(text, palette.page) >= 4.5, "{text}");
                assert!(contrast(text, palette.frame) >= 4.5, "{text}");
            }
        }
    }
}
