//! GPUs: what sysfs shows of them at once, and what nvidia-smi says if it is asked.

use std::time::Duration;

use crate::gpu::topo::Matrix;
use crate::gpu::{Asked, Gpus, Smi, Window, resizes, window};
use crate::pci::RawFunction;
use crate::pci::topology::Topology;
use crate::sys::pci_config::DEVICES;
use crate::sys::{Root, process};

/// How long nvidia-smi may take: a healthy driver with eight GPUs and no persistence takes some seconds; a sick GPU
/// never answers.
pub const SMI_LIMIT: Duration = Duration::from_secs(20);

/// Reads. With `ask`, nvidia-smi is run if it is there, and may take so long.
#[must_use]
pub fn gpus(
    root: &Root,
    functions: &[RawFunction],
    topology: &Topology,
    ask: Option<Duration>,
) -> Gpus {
    let windows = topology.gpus.iter().filter_map(|gpu| {
        let function = functions.iter().find(|f| f.bdf == gpu.bdf)?;
        let mut window = window(gpu.bdf, &function.bars);
        window.sizes = sizes(root, &window);
        Some(window)
    });
    let windows = windows.collect();
    let ask = ask.filter(|_| process::find(root, "nvidia-smi").is_some());
    let smi = ask.map_or(Asked::No, |limit| smi(root, limit));
    let topo = match (&smi, ask) {
        (Asked::Said(_), Some(limit)) => topo(root, limit),
        // where it hung it would hang again
        _ => Asked::No,
    };
    Gpus { windows, smi, topo }
}

fn sizes(root: &Root, window: &Window) -> Vec<u64> {
    let Some(bar) = window.bar else {
        return Vec::new();
    };
    let path = format!("{DEVICES}/{}/resource{bar}_resize", window.bdf);
    let text = root.text_if_there(&path).ok().flatten();
    text.map(|text| resizes(&text)).unwrap_or_default()
}

fn smi(root: &Root, limit: Duration) -> Asked<Smi> {
    run(root, limit, &["nvidia-smi", "-q", "-x"], |output| {
        Smi::read(output)
    })
}

fn topo(root: &Root, limit: Duration) -> Asked<Matrix> {
    run(root, limit, &["nvidia-smi", "topo", "-m"], |output| {
        Matrix::read(output).ok_or_else(|| "its output holds no matrix".to_owned())
    })
}

fn run<T>(
    root: &Root,
    limit: Duration,
    argv: &[&str],
    read: impl Fn(&[u8]) -> Result<T, String>,
) -> Asked<T> {
    let ended = process::start(root, argv, &[]).and_then(|running| running.wait(limit));
    match ended {
        Err(e) => Asked::Failed(e.to_string()),
        Ok(ended) if ended.stopped => Asked::Hung(limit.as_secs()),
        Ok(ended) => match read(&ended.output.stdout) {
            Ok(answer) => Asked::Said(answer),
            Err(why) => Asked::Failed(why),
        },
    }
}
