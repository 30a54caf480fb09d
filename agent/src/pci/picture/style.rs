//! The style sheets of the picture and of the page around it. Colours are written out rather than
//! named by custom properties, which some viewers of SVG do not know.

use std::fmt::Write as _;

use super::palette::{Palette, Scheme, Tone};

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
    colours(&mut css, &Scheme::Light.palette());
    // Paper is light.
    css.push_str("@media screen and (prefers-color-scheme:dark){\n");
    colours(&mut css, &Scheme::Dark.palette());
    css.push_str(
        "}\n@media print{.gdr{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n",
    );
    css
}

/// The style sheet of the page around it.
pub(super) fn page() -> String {
    let mut css = String::from(PAGE);
    page_colours(&mut css, &Scheme::Light.palette());
    css.push_str("@media screen and (prefers-color-scheme:dark){\n");
    page_colours(&mut css, &Scheme::Dark.palette());
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
table.matrix{font-size:11px}.matrix th,.matrix td{padding:3px 4px}
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
table{font-size:10px}table.matrix{font-size:8.5px;margin-left:0}th,td,.matrix th,.matrix td{padding:2px 3px}
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
