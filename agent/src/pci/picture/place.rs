//! Where everything goes. Left to right as traffic climbs down: host bridge, ports and switches by
//! depth, devices; one row for each device, so that the crossbar of paths can stand beside them.

use std::collections::BTreeSet;

use super::outline::{Item, Outline, What};
use super::scene::Rect;
use super::state::{acs_line, role_word};
use super::text::{clipped, width};
use crate::pci::Link;
use crate::pci::topology::{Bridge, Topology};

/// Size of the first line in a box, and of all other labels.
pub(super) const MAIN: i32 = 11;
pub(super) const SMALL: i32 = 10;
/// Height of a box and of the row that it stands in.
pub(super) const BOX: i32 = 26;
const ROW: i32 = 29;
/// Around the picture, and inside a NUMA node's frame.
pub(super) const MARGIN: i32 = 14;
const PAD: i32 = 10;
/// A NUMA node's name, and the space between two of them.
pub(super) const GROUP_HEAD: i32 = 20;
const GROUP_GAP: i32 = 8;
/// Between host bridges.
const HOST_GAP: i32 = 6;
/// Where lines from a box meet, right of it.
pub(super) const BUS: i32 = 9;
/// From the end of a link's label to the box, with room for a switch's frame.
pub(super) const TO_BOX: i32 = 11;
/// What a name from the machine may take.
const LONGEST: usize = 18;

/// A box: its two lines and its place.
#[derive(Debug)]
pub(super) struct Placed {
    pub rect: Rect,
    pub lines: [String; 2],
    /// What stands on the link that leads to it.
    pub link: Option<LinkLabel>,
}

/// Speed and width of a link.
#[derive(Debug)]
pub(super) struct LinkLabel {
    pub text: String,
    /// `link`, `narrow` (fewer lanes than the device has) or `unread`, each monospaced.
    pub class: &'static str,
}

/// Places in the order of the outline's items.
#[derive(Debug)]
pub(super) struct Places {
    pub boxes: Vec<Placed>,
    /// A frame for each NUMA node.
    pub frames: Vec<Rect>,
    /// First row's top and last row's bottom.
    pub top: i32,
    pub bottom: i32,
    pub right: i32,
}

pub(super) fn place(outline: &Outline<'_>, topology: &Topology, top: i32) -> Places {
    let mut boxes: Vec<Placed> = outline
        .items
        .iter()
        .map(|item| Placed {
            rect: Rect {
                x: 0,
                y: 0,
                w: 0,
                h: BOX,
            },
            lines: lines(item.what, topology),
            link: link_label(item, outline),
        })
        .collect();
    let right = across(&mut boxes, &columns(outline));
    let (rows, frames, bottom) = down(outline, top, right);
    for (placed, item) in boxes.iter_mut().zip(&outline.items) {
        let row = |at: usize| rows.get(at).copied().unwrap_or(top);
        placed.rect.y = (row(item.first_row) + row(item.last_row)) / 2 + (ROW - BOX) / 2;
    }
    Places {
        boxes,
        frames,
        top,
        bottom,
        right: right + PAD,
    }
}

/// Hosts first, then bridges by depth, devices all in the last.
fn columns(outline: &Outline<'_>) -> Vec<usize> {
    let column = |item: &Item<'_>| match item.what {
        What::Host(_) => Some(0),
        What::Bridge(_) => Some(item.depth + 1),
        What::Gpu(..) | What::Nic(..) => None,
    };
    let last = outline.items.iter().filter_map(column).max().unwrap_or(0) + 1;
    let items = outline.items.iter();
    items.map(|item| column(item).unwrap_or(last)).collect()
}

/// Gives boxes their horizontal places; answers where the last column ends.
fn across(boxes: &mut [Placed], columns: &[usize]) -> i32 {
    let last = columns.iter().copied().max().unwrap_or(0);
    let mut x = MARGIN + PAD;
    let mut end = x;
    for column in 0..=last {
        let mut here: Vec<&mut Placed> = boxes
            .iter_mut()
            .zip(columns)
            .filter(|(_, at)| **at == column)
            .map(|(placed, _)| placed)
            .collect();
        let label = here.iter().filter_map(|placed| placed.link.as_ref());
        let label = label.map(|link| width(&link.text, SMALL)).max();
        let widest = here.iter().map(|placed| box_width(&placed.lines)).max();
        if column > 0 {
            x = end + BUS + TO_BOX + label.map_or(2, |label| label + 5);
        }
        for placed in &mut here {
            placed.rect.x = x;
            placed.rect.w = widest.unwrap_or(0);
        }
        end = x + widest.unwrap_or(0);
    }
    end
}

/// The top of each row, the frames of the NUMA nodes, and where the last ends.
fn down(outline: &Outline<'_>, top: i32, right: i32) -> (Vec<i32>, Vec<Rect>, i32) {
    let hosts = outline.items.iter().filter(|item| item.parent.is_none());
    let starts: BTreeSet<usize> = hosts.map(|host| host.first_row).collect();
    let mut rows = Vec::with_capacity(outline.rows);
    let mut frames = Vec::new();
    let mut y = top;
    for group in &outline.groups {
        let frame = y;
        y += GROUP_HEAD;
        for row in group.rows.clone() {
            if row != group.rows.start && starts.contains(&row) {
                y += HOST_GAP;
            }
            rows.push(y);
            y += ROW;
        }
        y += 4;
        frames.push(Rect {
            x: MARGIN,
            y: frame,
            w: right + PAD - MARGIN,
            h: y - frame,
        });
        y += GROUP_GAP;
    }
    (rows, frames, y - GROUP_GAP)
}

fn box_width([first, second]: &[String; 2]) -> i32 {
    width(first, MAIN).max(width(second, SMALL)) + 14
}

fn lines(what: What<'_>, topology: &Topology) -> [String; 2] {
    match what {
        What::Host(name) => [clipped(name, LONGEST), "host bridge".to_owned()],
        What::Bridge(bridge) => {
            let role = role_word(bridge.role);
            [format!("{} {role}", bridge.bdf), acs_line(bridge)]
        }
        What::Gpu(index, device) | What::Nic(index, device) => {
            let sort = if matches!(what, What::Gpu(..)) {
                "GPU"
            } else {
                "NIC"
            };
            let driver = match &device.driver {
                Some(driver) => clipped(driver, LONGEST),
                None => "no driver".to_owned(),
            };
            // Functions of one device pass their own ACS, not a port's.
            let own = topology.bridge(device.bdf).filter(|port| port.on_paths > 0);
            let own = own.map_or_else(String::new, |port| format!(" {}", acs_line(port)));
            [
                format!("{sort}{index} {}", device.bdf),
                format!("{} {driver}{own}", clipped(&device.id, LONGEST)),
            ]
        }
    }
}

/// Only what hangs from a root port or a switch's downstream port has a link of its own; between the
/// ports of a switch there is none.
fn link_label(item: &Item<'_>, outline: &Outline<'_>) -> Option<LinkLabel> {
    let (link, gap) = match item.what {
        What::Host(_) => return None,
        What::Bridge(Bridge { link, gap, .. }) => (link, gap),
        What::Gpu(_, device) | What::Nic(_, device) => (&device.link, &device.gap),
    };
    if gap.is_some() {
        return Some(LinkLabel {
            text: "? ports unknown".to_owned(),
            class: "m unread",
        });
    }
    match outline.items.get(item.parent?)?.what {
        What::Bridge(port) if port.role.redirects_peers() => {
            Some(speed_and_width(link, &port.link))
        }
        // Built into the root complex; a link there is what the device says.
        What::Host(_) if item.what.is_device() && link.current_width.is_some() => {
            Some(speed_and_width(link, link))
        }
        _ => None,
    }
}

fn speed_and_width(link: &Link, port: &Link) -> LinkLabel {
    let known = |link: &Link| {
        let width = link
            .current_width
            .filter(|width| (1..255).contains(width))?;
        let speed = link.current_speed.as_deref()?;
        speed
            .starts_with(|c: char| c.is_ascii_digit())
            .then(|| (speed.to_owned(), width))
    };
    let Some((speed, width)) = known(link).or_else(|| known(port)) else {
        return LinkLabel {
            text: "? link".to_owned(),
            class: "m unread",
        };
    };
    let speed = speed.trim_end_matches(" PCIe").replacen(".0 ", " ", 1);
    let speed = clipped(&speed, LONGEST);
    let most = link.max_width.filter(|most| *most < 255 && width < *most);
    match most {
        Some(most) => LinkLabel {
            text: format!("{speed} x{width} of {most}"),
            class: "m narrow",
        },
        None => LinkLabel {
            text: format!("{speed} x{width}"),
            class: "m link",
        },
    }
}
