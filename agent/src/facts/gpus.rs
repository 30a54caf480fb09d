//! GPUs: what sysfs shows of them at once, and what nvidia-smi says if it is asked.

use std::time::Duration;

use crate::gpu::topo::Matrix;
use crate::gpu::{Asked, Gpus, Smi, Window, resizes, window};
use crate::pci::RawFunction;
use crate::pci::topology::Topology;
use crate::sys::pci_config::DEVICES;
use crate::sys::{self, Ask, Root, Said};

/// How long nvidia-smi may take: a healthy driver with eight GPUs and no persistence takes some seconds; a sick GPU
/// never answers.
pub const SMI_LIMIT: Duration = Duration::from_secs(20);

/// Reads. What a capture has of nvidia-smi is taken; else, with `ask`, it is run if it is there, and may take so long.
#[must_use]
pub fn gpus(
    root: &Root,
    functions: &[RawFunction],
    topology: &Topology,
    ask: Option<Ask<'_>>,
) -> Gpus {
    let windows = topology.gpus.iter().filter_map(|gpu| {
        let function = functions.iter().find(|f| f.bdf == gpu.bdf)?;
        let mut window = window(gpu.bdf, &function.bars).resizable(&function.config);
        if window.sizes.is_empty() {
            sizes(root, &mut window);
        }
        Some(window)
    });
    let windows = windows.collect();
    let smi = said(root, &["nvidia-smi", "-q", "-x"], ask, Smi::read);
    let topo = match smi {
        Asked::Said(_) => said(root, &["nvidia-smi", "topo", "-m"], ask, |output| {
            Matrix::read(output).ok_or_else(|| "its output holds no matrix".to_owned())
        }),
        // where it hung it would hang again
        _ => Asked::No,
    };
    Gpus { windows, smi, topo }
}

/// The kernel's file has what the capability has, where the function's extended space is out of reach.
fn sizes(root: &Root, window: &mut Window) {
    let Some(bar) = window.bar else {
        return;
    };
    let path = format!("{DEVICES}/{}/resource{bar}_resize", window.bdf);
    let text = root.text_if_there(&path).ok().flatten();
    window.sizes = text.map(|text| resizes(&text)).unwrap_or_default();
    window.sizes_from = Some(path).filter(|_| !window.sizes.is_empty());
}

fn said<T>(
    root: &Root,
    argv: &[&str],
    ask: Option<Ask<'_>>,
    read: impl Fn(&[u8]) -> Result<T, String>,
) -> Asked<T> {
    match sys::said(root, argv, ask) {
        None => Asked::No,
        Some(Said::Stopped(seconds)) => Asked::Hung(seconds),
        Some(Said::Failed(why)) => Asked::Failed(why),
        Some(Said::Output(output)) => match read(&output) {
            Ok(answer) => Asked::Said(answer),
            Err(why) => Asked::Failed(why),
        },
    }
}
