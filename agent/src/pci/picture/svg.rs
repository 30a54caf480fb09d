//! The picture itself.

use super::outline::{Group, Item, Outline, What};
use super::place::{self, BUS, MAIN, MARGIN, Placed, Places, SMALL, TO_BOX};
use super::scene::{Label, Rect, Scene};
use super::state::{State, port_title};
use super::text::{escaped, printable, width};
use super::{crossbar, legend, style};
use crate::pci::topology::{Device, Topology};
use crate::pci::tree::Role;
use crate::plain::counted;

/// Where the tree begins, below title and summary.
const TOP: i32 = 62;
/// What title and legend need at least.
const NARROWEST: i32 = 780;
const TITLE: &str = "PCIe paths between GPUs and NICs";

/// The topology as an SVG document.
#[must_use]
pub fn svg(topology: &Topology) -> String {
    let scene = scene(topology);
    let Scene { width, height, .. } = scene;
    let (title, about) = (escaped(TITLE), escaped(&description(topology)));
    let (sheet, elements) = (style::sheet(), scene.elements());
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"gdr\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-labelledby=\"gdr-title gdr-desc\">
<title id=\"gdr-title\">{title}</title>
<desc id=\"gdr-desc\">{about}</desc>
<style>
{sheet}</style>
<defs><pattern id=\"gdr-hatch\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
<rect class=\"ground\" width=\"8\" height=\"8\"/><path class=\"stripe\" d=\"M0 0V8\"/></pattern></defs>
{elements}</svg>
"
    )
}

fn scene(topology: &Topology) -> Scene {
    let outline = Outline::of(topology);
    let places = place::place(&outline, topology, TOP);
    let mut scene = Scene::default();
    scene.width = (places.right + crossbar::width(topology) + MARGIN).max(NARROWEST);
    let mut above = Scene::default();
    frames(&mut above, &outline, &places);
    links(&mut above, &outline, &places);
    crossbar::draw(&mut above, &outline, &places, topology);
    boxes(&mut above, &outline, &places, topology);
    above.width = scene.width;
    let end = legend::draw(&mut above, places.bottom + 14);
    scene.height = end + MARGIN;
    let page = Rect {
        x: 0,
        y: 0,
        w: scene.width,
        h: scene.height,
    };
    scene.rect(page, 0, "page");
    heading(&mut scene, topology);
    scene.append(above);
    scene
}

fn heading(scene: &mut Scene, topology: &Topology) {
    let line = |y, text: &str, size, class| Label {
        x: MARGIN,
        y,
        text: text.to_owned(),
        size,
        class,
    };
    scene.text(line(30, TITLE, 17, "h"));
    scene.text(line(50, &summary(topology), 12, "note"));
}

/// Counts, in a line.
pub(super) fn summary(topology: &Topology) -> String {
    let count = |state| {
        topology
            .paths
            .iter()
            .filter(|path| State::of_path(path) == state)
            .count()
    };
    let gpus = counted(topology.gpus.len(), "GPU");
    let nics = counted(topology.nics.len(), "NIC");
    match topology.paths.len() {
        0 if topology.gpus.is_empty() && topology.nics.is_empty() => {
            "No GPU and no NIC match the selectors.".to_owned()
        }
        0 => format!("{gpus}, {nics}: no GPU-NIC path."),
        paths => format!(
            "{gpus}, {nics}, {}: {} direct, {} redirected by ACS (!), {} unknown (?).",
            counted(paths, "path"),
            count(State::Direct),
            count(State::Redirected),
            count(State::Unknown)
        ),
    }
}

/// The picture in words, for those who do not see it.
fn description(topology: &Topology) -> String {
    let mut text = summary(topology);
    for (state, said) in [
        (State::Redirected, "Ports that redirect peer traffic"),
        (State::Unknown, "Ports whose ACS is unknown"),
    ] {
        let ports = topology
            .bridges
            .iter()
            .filter(|b| b.on_paths > 0 && State::of_port(b) == state);
        let ports: Vec<String> = ports.map(|bridge| bridge.bdf.to_string()).collect();
        if !ports.is_empty() {
            text.push_str(&format!(" {said}: {}.", ports.join(", ")));
        }
    }
    text
}

/// A frame for each NUMA node, and one for each switch.
fn frames(scene: &mut Scene, outline: &Outline<'_>, places: &Places) {
    for (Group { numa, .. }, frame) in outline.groups.iter().zip(&places.frames) {
        let text = match numa {
            Some(nodes) => format!("NUMA node {nodes}"),
            None => "NUMA node unknown: the firmware does not say".to_owned(),
        };
        scene.open("numa".to_owned(), String::new(), text.clone());
        scene.rect(*frame, 6, "frame");
        let class = if numa.is_some() { "h" } else { "h unread" };
        let label = Label {
            x: frame.x + 10,
            y: frame.y + 15,
            text,
            size: 12,
            class,
        };
        scene.text(label);
        scene.close();
    }
    for (at, (item, placed)) in outline.items.iter().zip(&places.boxes).enumerate() {
        if !matches!(item.what, What::Bridge(bridge) if bridge.role == Role::UpstreamPort) {
            continue;
        }
        let inside = outline.items.iter().zip(&places.boxes);
        let ports = inside.filter(|(below, _)| below.parent == Some(at) && !below.what.is_device());
        let mut frame = placed.rect;
        for (_, Placed { rect, .. }) in ports {
            let (top, bottom) = (
                frame.y.min(rect.y),
                (frame.y + frame.h).max(rect.y + rect.h),
            );
            let right = frame.right().max(rect.right());
            frame = Rect {
                y: top,
                h: bottom - top,
                w: right - frame.x,
                ..frame
            };
        }
        let frame = Rect {
            x: frame.x - 5,
            y: frame.y - 2,
            w: frame.w + 10,
            h: frame.h + 4,
        };
        scene.rect(frame, 5, "switch");
    }
}

/// Lines from each box to the one above it, with the link's speed and width.
fn links(scene: &mut Scene, outline: &Outline<'_>, places: &Places) {
    for (item, placed) in outline.items.iter().zip(&places.boxes) {
        let Some(parent) = item.parent.and_then(|at| places.boxes.get(at)) else {
            continue;
        };
        let from = (parent.rect.right(), parent.rect.middle());
        let to = (placed.rect.x, placed.rect.middle());
        let bus = from.0 + BUS;
        let gap = match item.what {
            What::Host(_) => None,
            What::Bridge(bridge) => bridge.gap.as_ref(),
            What::Gpu(_, device) | What::Nic(_, device) => device.gap.as_ref(),
        };
        let class = if gap.is_some() { "gap" } else { "edge" };
        scene.line(&[from, (bus, from.1), (bus, to.1), to], class);
        if let Some(link) = &placed.link {
            let x = to.0 - TO_BOX - width(&link.text, SMALL);
            let text = link.text.clone();
            scene.text(Label {
                x,
                y: to.1 - 4,
                text,
                size: SMALL,
                class: link.class,
            });
        }
    }
}

fn boxes(scene: &mut Scene, outline: &Outline<'_>, places: &Places, topology: &Topology) {
    for (item, placed) in outline.items.iter().zip(&places.boxes) {
        let (class, about, title) = meaning(item, topology);
        scene.open(class, about, title);
        scene.rect(placed.rect, 4, "b");
        let [first, second] = &placed.lines;
        let Rect { x, y, .. } = placed.rect;
        for (text, size, y) in [(first, MAIN, y + 12), (second, SMALL, y + 23)] {
            scene.text(Label {
                x: x + 7,
                y,
                text: text.clone(),
                size,
                class: "m",
            });
        }
        scene.close();
    }
}

/// Class, address and description of a box.
fn meaning(item: &Item<'_>, topology: &Topology) -> (String, String, String) {
    match item.what {
        What::Host(name) => (
            "host".to_owned(),
            printable(name),
            format!("Host bridge {}", printable(name)),
        ),
        What::Bridge(bridge) => (
            format!("port {}", State::of_port(bridge).class()),
            bridge.bdf.to_string(),
            port_title(bridge),
        ),
        What::Gpu(index, device) => device_meaning("GPU", "gpu", index, device, topology),
        What::Nic(index, device) => device_meaning("NIC", "nic", index, device, topology),
    }
}

fn device_meaning(
    sort: &str,
    class: &str,
    index: usize,
    device: &Device,
    topology: &Topology,
) -> (String, String, String) {
    let mut title = format!("{sort}{index} {} {}", device.bdf, printable(&device.id));
    match &device.driver {
        Some(driver) => title.push_str(&format!(", driver {}", printable(driver))),
        None => title.push_str(", no driver"),
    }
    match device.numa_node {
        Some(node) => title.push_str(&format!(", NUMA node {node}")),
        None => title.push_str(", NUMA node unknown"),
    }
    if let Some(gap) = &device.gap {
        title.push_str(&format!(
            "; the ports above are not all known: {}",
            printable(gap)
        ));
    }
    // Functions of one device pass their own ACS, not a port's.
    let own = topology.bridge(device.bdf).filter(|port| port.on_paths > 0);
    let class = match own {
        Some(port) => {
            title.push_str(&format!("; {}", port_title(port)));
            format!("{class} {}", State::of_port(port).class())
        }
        None => class.to_owned(),
    };
    (class, device.bdf.to_string(), title)
}
