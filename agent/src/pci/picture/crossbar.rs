//! Every GPU-NIC path: a column for each GPU, crossing the row of each NIC.

use super::outline::{Outline, What};
use super::place::{BOX, Placed, Places, SMALL};
use super::scene::{Rect, Scene};
use super::state::{State, by_ends};
use crate::pci::topology::{Device, Path, Topology};

/// A cell and the distance from one to the next.
const CELL: i32 = 42;
const PITCH: i32 = 47;
const HEIGHT: i32 = 20;
/// From the NUMA nodes' frames to the first column.
const GAP: i32 = 22;

/// How wide the crossbar of this topology is, with the space left of it.
pub(super) fn width(topology: &Topology) -> i32 {
    if topology.paths.is_empty() {
        return 0;
    }
    let columns = i32::try_from(topology.gpus.len()).unwrap_or(i32::MAX / 1000);
    GAP + columns * PITCH
}

pub(super) fn draw(scene: &mut Scene, outline: &Outline<'_>, places: &Places, topology: &Topology) {
    if topology.paths.is_empty() {
        return;
    }
    let rows = || outline.items.iter().zip(&places.boxes);
    let gpus: Vec<(usize, &Device, &Placed)> = rows()
        .filter_map(|(item, placed)| match item.what {
            What::Gpu(index, device) => Some((index, device, placed)),
            _ => None,
        })
        .collect();
    let nics: Vec<(usize, &Device, &Placed)> = rows()
        .filter_map(|(item, placed)| match item.what {
            What::Nic(index, device) => Some((index, device, placed)),
            _ => None,
        })
        .collect();
    let lefts = (0..).map(|column| places.right + GAP + column * PITCH);
    let columns: Vec<_> = gpus.iter().zip(lefts).collect();
    let last = columns.last().map_or(places.right, |(_, x)| x + CELL / 2);
    for (_, _, placed) in &nics {
        let y = placed.rect.middle();
        scene.line(&[(placed.rect.right(), y), (last, y)], "wire");
    }
    for ((index, _, placed), x) in &columns {
        let (x, y) = (*x + CELL / 2, placed.rect.middle());
        scene.line(
            &[(x, places.top + BOX - 11), (x, places.bottom - 6)],
            "wire",
        );
        scene.line(&[(placed.rect.right(), y), (x, y)], "wire gpu-wire");
        let head = Rect {
            x: x - CELL / 2,
            y: places.top,
            w: CELL,
            h: 12,
        };
        scene.centred(head, places.top + 11, &format!("GPU{index}"), SMALL);
        scene.rect(
            Rect {
                x: x - 4,
                y: y - 4,
                w: 8,
                h: 8,
            },
            4,
            "dot",
        );
    }
    let paths = by_ends(topology);
    for ((gpu_index, gpu, _), x) in &columns {
        for (nic_index, nic, placed) in &nics {
            let Some(path) = paths.get(&(gpu.bdf, nic.bdf)) else {
                continue;
            };
            let state = State::of_path(path);
            let rect = Rect {
                x: *x,
                y: placed.rect.middle() - HEIGHT / 2,
                w: CELL,
                h: HEIGHT,
            };
            let near = gpu.nearest.contains(&nic.bdf);
            let class = if near { "cell near" } else { "cell" };
            scene.open(
                format!("{class} {}", state.class()),
                format!("{} {}", gpu.bdf, nic.bdf),
                title(path, *gpu_index, *nic_index, near),
            );
            scene.rect(rect, 3, "b");
            let text = format!("{}{}", path.kind, state.mark());
            scene.centred(rect, rect.y + 14, &text, SMALL);
            scene.close();
        }
    }
}

fn title(path: &Path, gpu: usize, nic: usize, near: bool) -> String {
    let mut text = format!(
        "GPU{gpu} {} to NIC{nic} {}: {}, {}",
        path.gpu,
        path.nic,
        path.kind,
        State::of_path(path).word()
    );
    if let Some(why) = &path.unknown {
        text.push_str(&format!(" ({})", super::text::printable(why)));
    }
    if near {
        text.push_str("; no NIC is nearer to this GPU");
    }
    if !path.bridges.is_empty() {
        let ports: Vec<String> = path.bridges.iter().map(ToString::to_string).collect();
        text.push_str(&format!("; through {}", ports.join(", ")));
    }
    text
}
