//! One page with the picture, what to do, and the same facts as tables. Nothing in it comes from
//! elsewhere, and the page forbids itself to load anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::advice::{Advice, advice};
use super::state::{State, acs_line, by_ends};
use super::style;
use super::svg::{summary, svg};
use super::text::{escaped, printable};
use crate::pci::Bdf;
use crate::pci::path::PathKind;
use crate::pci::topology::{Device, Path, Topology};

type Paths<'a> = BTreeMap<(Bdf, Bdf), &'a Path>;

const HEAD: &str = "<!DOCTYPE html>
<html lang=\"en\">
<head>
<meta charset=\"utf-8\"/>
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>
<title>PCIe paths between GPUs and NICs</title>
<style>
";

/// The topology as a page that needs nothing but itself.
#[must_use]
pub fn html(topology: &Topology) -> String {
    let mut out = String::from(HEAD);
    out.push_str(&style::page());
    let _ = write!(
        out,
        "</style>\n</head>\n<body>\n<main>\n<h1>PCIe paths between GPUs and NICs</h1>\n<p class=\"hidden\">{}</p>\n<figure>\n{}</figure>\n",
        escaped(&summary(topology)),
        svg(topology)
    );
    out.push_str("<h2>What to do</h2>\n");
    for advice in advice(topology) {
        paragraph(&mut out, &advice);
    }
    if !topology.paths.is_empty() {
        let paths = by_ends(topology);
        matrix(&mut out, topology, &paths);
        best(&mut out, topology, &paths);
        ports(&mut out, topology);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Text from the machine, fit for a page.
fn safe(text: &str) -> String {
    escaped(&printable(text))
}

fn paragraph(out: &mut String, advice: &Advice) {
    let Advice {
        state,
        text,
        commands,
        list,
    } = advice;
    let _ = writeln!(
        out,
        "<section class=\"advice {}\">\n<p>{}</p>",
        state.class(),
        escaped(text)
    );
    if !commands.is_empty() {
        out.push_str("<dl>\n");
        for (command, does) in commands {
            let (command, does) = (escaped(command), escaped(does));
            let _ = writeln!(
                out,
                "<div><dt><code>{command}</code></dt><dd>{does}</dd></div>"
            );
        }
        out.push_str("</dl>\n");
    }
    if !list.is_empty() {
        out.push_str("<ul>\n");
        for item in list {
            let _ = writeln!(out, "<li>{}</li>", safe(item));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</section>\n");
}

fn named(sort: &str, index: usize, device: &Device) -> String {
    format!("{sort}{index} <code>{}</code>", device.bdf)
}

fn matrix(out: &mut String, topology: &Topology, paths: &Paths<'_>) {
    out.push_str("<h2>Every path</h2>\n<div class=\"wide\"><table class=\"matrix\">\n<caption>How far, and what ACS does to peer traffic. The nearest NICs of each GPU are in bold.</caption>\n<thead><tr><td></td>");
    for (index, nic) in topology.nics.iter().enumerate() {
        let _ = write!(
            out,
            "<th scope=\"col\">NIC{index}<br/><code>{}</code></th>",
            nic.bdf
        );
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (index, gpu) in topology.gpus.iter().enumerate() {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th>",
            named("GPU", index, gpu)
        );
        for nic in &topology.nics {
            match paths.get(&(gpu.bdf, nic.bdf)) {
                Some(path) => cell(out, path, gpu.nearest.contains(&nic.bdf)),
                None => out.push_str("<td></td>"),
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn cell(out: &mut String, path: &Path, near: bool) {
    let state = State::of_path(path);
    let kind = match near {
        true => format!("<strong>{}</strong>", path.kind),
        false => path.kind.to_string(),
    };
    let _ = write!(
        out,
        "<td class=\"{}\">{kind}<br/>{}{}</td>",
        state.class(),
        state.word(),
        state.mark()
    );
}

/// A row for each GPU, and one more for each further state among its nearest NICs.
fn best(out: &mut String, topology: &Topology, paths: &Paths<'_>) {
    out.push_str("<h2>Best NIC for each GPU</h2>\n<div class=\"wide\"><table>\n<caption>The nearest; several where they are equally near.</caption>\n<thead><tr><th scope=\"col\">GPU</th><th scope=\"col\">NIC</th><th scope=\"col\">Distance</th><th scope=\"col\">Peer traffic</th><th scope=\"col\">Ports that decide</th></tr></thead>\n<tbody>\n");
    for (index, gpu) in topology.gpus.iter().enumerate() {
        for state in [State::Direct, State::Unknown, State::Redirected] {
            let nics = topology.nics.iter().enumerate();
            let near: Vec<(usize, &Device, &Path)> = nics
                .filter(|(_, nic)| gpu.nearest.contains(&nic.bdf))
                .filter_map(|(at, nic)| Some((at, nic, *paths.get(&(gpu.bdf, nic.bdf))?)))
                .filter(|(_, _, path)| State::of_path(path) == state)
                .collect();
            row(out, &named("GPU", index, gpu), state, &near);
        }
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn row(out: &mut String, gpu: &str, state: State, near: &[(usize, &Device, &Path)]) {
    let Some((_, _, first)) = near.first() else {
        return;
    };
    let nics: Vec<String> = near
        .iter()
        .map(|(index, nic, _)| named("NIC", *index, nic))
        .collect();
    let ports: BTreeSet<Bdf> = near
        .iter()
        .flat_map(|(_, _, path)| path.bridges.iter().copied())
        .collect();
    let ports: Vec<String> = ports
        .iter()
        .map(|port| format!("<code>{port}</code>"))
        .collect();
    let why = first.unknown.as_deref().map(safe);
    let why = why.map_or_else(String::new, |why| format!("<br/><small>{why}</small>"));
    let _ = writeln!(
        out,
        "<tr><th scope=\"row\">{gpu}</th><td>{}</td><td>{} <small>{}</small></td><td class=\"{}\">{}{}{why}</td><td>{}</td></tr>",
        nics.join("<br/>"),
        first.kind,
        distance(first.kind),
        state.class(),
        state.word(),
        state.mark(),
        ports.join(" "),
    );
}

const fn distance(kind: PathKind) -> &'static str {
    match kind {
        PathKind::Pix => "one switch",
        PathKind::Pxb => "several switches",
        PathKind::Phb => "one host bridge",
        PathKind::Node => "same NUMA node",
        PathKind::Sys => "other NUMA node",
    }
}

fn ports(out: &mut String, topology: &Topology) {
    out.push_str("<h2>Ports on the paths</h2>\n<div class=\"wide\"><table>\n<caption>What each lets pass, and its ACS control word as lspci names the bits.</caption>\n<thead><tr><th scope=\"col\">Port</th><th scope=\"col\">Kind</th><th scope=\"col\">ACS</th><th scope=\"col\">Control word</th><th scope=\"col\">Paths</th></tr></thead>\n<tbody>\n");
    for bridge in topology.bridges.iter().filter(|port| port.on_paths > 0) {
        let control = match (&bridge.acs, &bridge.acs_unknown) {
            (Some(acs), _) => format!("<code>{:04x}</code> {}", acs.ctl, safe(&acs.text)),
            (None, Some(why)) => safe(why),
            (None, None) => "no capability, nothing that could redirect".to_owned(),
        };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td><td class=\"{}\">{}</td><td>{control}</td><td>{}</td></tr>",
            bridge.bdf,
            bridge.role.words(),
            State::of_port(bridge).class(),
            acs_line(bridge),
            bridge.on_paths
        );
    }
    out.push_str("</tbody>\n</table></div>\n");
}
