//! Readers of nvidia-smi's output against collected outputs and against hostile input; the windows against a made-up node.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    missing_docs,
    reason = "a test"
)]

mod growth;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gdr_agent::acs::with_selectors;
use gdr_agent::capture;
use gdr_agent::checks::Severity;
use gdr_agent::facts::pci::{Depth, functions};
use gdr_agent::facts::{gpus, rdma_devices};
use gdr_agent::gpu::topo::{Cell, Matrix, compare};
use gdr_agent::gpu::{Asked, Gpus, Smi, findings};
use gdr_agent::pci::path::PathKind;
use gdr_agent::pci::topology::Topology;
use gdr_agent::pci::tree::Tree;
use gdr_agent::sys::{Ask, Root};
use gdr_policy::Policy;
use gdr_tests::node::{self, NodeSpec};
use proptest::prelude::*;

fn folder(name: &str) -> Option<PathBuf> {
    match std::env::var_os("GDR_CORPUS") {
        Some(root) => Some(PathBuf::from(root).join(name)),
        None => {
            assert!(std::env::var_os("CI").is_none(), "GDR_CORPUS is not set");
            println!("SKIPPED: GDR_CORPUS is not set, the collected outputs are not tested");
            None
        }
    }
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path());
    entries
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                std::fs::read(&path).unwrap(),
            )
        })
        .collect()
}

/// As another reader (Python's ElementTree, and grep) finds them in the files. Driver, GPUs, and of the first GPU: name, address, memory, window, generation and width of the link (max, now), persistence.
type Answer = (
    &'static str,
    Option<&'static str>,
    usize,
    &'static str,
    &'static str,
    u64,
    u64,
    [u64; 4],
    bool,
);

const ANSWERS: &[Answer] = &[
    (
        "x-telegraf-a100",
        Some("535.54.03"),
        1,
        "NVIDIA A100-SXM4-80GB",
        "0000:01:00.0",
        81920,
        131_072,
        [4, 4, 16, 16],
        false,
    ),
    (
        "x-telegraf-a10g",
        Some("515.105.01"),
        1,
        "NVIDIA A10G",
        "0000:00:1e.0",
        23028,
        32768,
        [4, 1, 16, 8],
        false,
    ),
    (
        "x-telegraf-gtx-1660",
        Some("418.43"),
        1,
        "Graphics Device",
        "0000:43:00.0",
        5912,
        256,
        [3, 1, 16, 16],
        false,
    ),
    (
        "x-telegraf-quadro",
        Some("418.43"),
        1,
        "Quadro P400",
        "0000:43:00.0",
        1998,
        256,
        [3, 1, 16, 16],
        false,
    ),
    (
        "x-telegraf-rtx-3060",
        Some("570.124.04"),
        1,
        "NVIDIA GeForce RTX 3060",
        "0000:2d:00.0",
        12288,
        256,
        [4, 1, 16, 16],
        true,
    ),
    (
        "x-telegraf-rtx-3090",
        Some("525.147.05"),
        1,
        "NVIDIA GeForce RTX 3090",
        "0000:00:10.0",
        24576,
        32768,
        [4, 1, 16, 16],
        true,
    ),
    (
        "y-xuesongtap-10",
        Some("535.129.03"),
        8,
        "NVIDIA A100-SXM4-40GB",
        "0000:2f:00.0",
        40960,
        65536,
        [4, 4, 16, 16],
        false,
    ),
    (
        "y-xuesongtap-11",
        Some("535.129.03"),
        1,
        "NVIDIA A100-SXM4-40GB",
        "0000:2f:00.0",
        40960,
        65536,
        [4, 4, 16, 16],
        false,
    ),
    (
        "31-",
        Some("460.56"),
        8,
        "Quadro RTX 5000",
        "0000:1a:00.0",
        16125,
        256,
        [3, 1, 16, 16],
        true,
    ),
    (
        "50-",
        Some("384.59"),
        4,
        "GeForce GTX 1080 Ti",
        "0000:04:00.0",
        11172,
        256,
        [3, 3, 16, 16],
        false,
    ),
    (
        "62-",
        Some("510.73.08"),
        1,
        "Quadro K2200",
        "0000:01:00.0",
        4096,
        256,
        [2, 1, 16, 16],
        true,
    ),
    (
        "74-",
        Some("535.113.01"),
        2,
        "NVIDIA RTX A6000",
        "0000:2e:00.0",
        49140,
        256,
        [4, 4, 16, 16],
        false,
    ),
];

#[test]
fn every_collected_answer_of_nvidia_smi() {
    let Some(folder) = folder("nvidia-smi-q") else {
        return;
    };
    let files = files(&folder);
    for (prefix, driver, count, name, bdf, fb, bar1, link, persistence) in ANSWERS {
        let (_, bytes) = files.iter().find(|(f, _)| f.starts_with(prefix)).unwrap();
        let smi = Smi::read(bytes).unwrap();
        assert_eq!(smi.driver.as_deref(), *driver, "{prefix}");
        assert_eq!(smi.gpus.len(), *count, "{prefix}");
        let gpu = &smi.gpus[0];
        assert_eq!(gpu.name.as_deref(), Some(*name), "{prefix}");
        assert_eq!(gpu.bdf, Some(bdf.parse().unwrap()), "{prefix}");
        assert_eq!(
            (gpu.fb_mib, gpu.bar1_mib),
            (Some(*fb), Some(*bar1)),
            "{prefix}"
        );
        let found = [
            gpu.generation.max,
            gpu.generation.current,
            gpu.width.max,
            gpu.width.current,
        ];
        assert_eq!(found, link.map(Some), "{prefix}");
        assert_eq!(gpu.persistence, Some(*persistence), "{prefix}");
        assert!(
            smi.gpus
                .iter()
                .all(|g| g.bdf.is_some() && g.bar1_mib == Some(*bar1)),
            "{prefix}"
        );
        assert!(
            smi.gpus
                .iter()
                .all(|g| g.sick.is_empty() && g.fabric_state.is_none()),
            "{prefix}"
        );
    }
    // the rest are the plain table, and a program without its library
    let rest: Vec<(&String, &Vec<u8>)> = files
        .iter()
        .filter(|(f, _)| !ANSWERS.iter().any(|a| f.starts_with(a.0)))
        .collect();
    assert_eq!(rest.len(), 3);
    for (name, bytes) in rest {
        let why = Smi::read(bytes).unwrap_err();
        assert_eq!(
            why.contains("couldn't find libnvidia-ml.so"),
            name.starts_with("80-"),
            "{name}: {why}"
        );
    }
}

/// Names, rows that are whole, and for each GPU the NICs at PIX or PXB: from the index of the collection, seen to be right in the files.
type Topo = (
    &'static str,
    usize,
    usize,
    &'static [(&'static str, &'static [&'static str])],
);

const TOPOS: &[Topo] = &[
    ("s01-", 2, 2, &[]),
    ("s03-", 2, 2, &[]),
    (
        "s04-",
        4,
        2,
        &[("GPU1", &["mlx5_0"]), ("GPU2", &["mlx5_1"])],
    ),
    (
        "s06-",
        8,
        2,
        &[
            ("GPU0", &["mlx5_0"]),
            ("GPU1", &["mlx5_0"]),
            ("GPU4", &["mlx5_1"]),
            ("GPU5", &["mlx5_1"]),
        ],
    ),
    (
        "s07-",
        8,
        2,
        &[
            ("GPU2", &["mlx5_0"]),
            ("GPU3", &["mlx5_0"]),
            ("GPU6", &["mlx5_1"]),
            ("GPU7", &["mlx5_1"]),
        ],
    ),
    (
        "s08-",
        4,
        2,
        &[
            ("GPU0", &["NIC0"]),
            ("GPU1", &["NIC0"]),
            ("GPU2", &["NIC1"]),
            ("GPU3", &["NIC1"]),
        ],
    ),
    ("s09-", 4, 1, &[]),
    ("s10-", 8, 0, &[]),
    (
        "21-",
        8,
        10,
        &[
            ("GPU0", &["NIC3"]),
            ("GPU1", &["NIC5"]),
            ("GPU2", &["NIC4"]),
            ("GPU3", &["NIC0", "NIC1", "NIC2"]),
            ("GPU4", &["NIC7"]),
            ("GPU5", &["NIC9"]),
            ("GPU6", &["NIC8"]),
            ("GPU7", &["NIC6"]),
        ],
    ),
    ("26-", 2, 0, &[]),
    ("29-", 2, 0, &[]),
    ("30-", 2, 0, &[]),
];

#[test]
fn every_collected_matrix() {
    let Some(folder) = folder("nvidia-smi-topo") else {
        return;
    };
    let files = files(&folder);
    assert_eq!(files.len(), TOPOS.len());
    for (prefix, gpus, nics, near) in TOPOS {
        let (_, bytes) = files.iter().find(|(f, _)| f.starts_with(prefix)).unwrap();
        let matrix = Matrix::read(bytes).unwrap();
        assert_eq!(
            (matrix.gpus().count(), matrix.nic_devices().count()),
            (*gpus, *nics),
            "{prefix}"
        );
        assert!(
            matrix.rows.iter().all(|row| row.len() == gpus + nics),
            "{prefix}"
        );
        assert!(
            matrix
                .rows
                .iter()
                .flatten()
                .all(|cell| *cell != Cell::Other),
            "{prefix}"
        );
        // the matrix is its own mirror image
        for a in &matrix.names {
            for b in &matrix.names {
                assert_eq!(matrix.cell(a, b), matrix.cell(b, a), "{prefix}");
            }
        }
        for gpu in matrix.gpus() {
            let close = |nic: &&str| {
                matches!(
                    matrix.cell(gpu, nic),
                    Some(Cell::Pci(PathKind::Pix | PathKind::Pxb))
                )
            };
            let found: Vec<&str> = matrix
                .nic_devices()
                .map(|(nic, _)| nic)
                .filter(close)
                .collect();
            let wanted = near
                .iter()
                .find(|(name, _)| *name == gpu)
                .map_or(&[][..], |(_, nics)| nics);
            assert_eq!(found, wanted, "{prefix} {gpu}");
        }
    }
    let b200 = Matrix::read(&files["21-b200-8gpu-10nic-ansi-underline.txt"]).unwrap();
    assert_eq!(b200.cell("GPU0", "GPU1"), Some(Cell::NvLink(18)));
    assert_eq!(b200.nic_devices().last(), Some(("NIC9", "mlx5_9")));
    assert_eq!(
        (b200.numa[7], b200.cpus[7].as_deref()),
        (Some(1), Some("64-127,192-255"))
    );
}

struct Made {
    dir: tempfile::TempDir,
    root: Root,
}

fn made(spec: &NodeSpec) -> Made {
    let dir = tempfile::tempdir().unwrap();
    node::create(dir.path(), spec).unwrap();
    let root = Root::open(dir.path()).unwrap();
    Made { dir, root }
}

fn read(root: &Root, limit: Option<Duration>) -> (Topology, Gpus) {
    read_telling(root, limit, &|_| {})
}

fn read_telling(root: &Root, limit: Option<Duration>, tell: &dyn Fn(&str)) -> (Topology, Gpus) {
    let ask = limit.map(|limit| Ask { limit, tell });
    with_selectors(&Policy::default().devices, |selectors| {
        let functions = functions(root, &Depth::Topology(selectors)).unwrap();
        let topology = Topology::of(&Tree::build(&functions), selectors);
        let gpus = gpus(root, &functions, &topology, ask);
        (topology, gpus)
    })
}

fn ids(gpus: &Gpus) -> Vec<String> {
    findings(gpus).into_iter().map(|f| f.id).collect()
}

#[test]
fn windows_that_are_small_and_could_be_larger() {
    let (_, good) = read(&made(&NodeSpec::default()).root, None);
    assert_eq!(good.windows.len(), 8);
    assert!(findings(&good).is_empty());
    let node = made(&NodeSpec {
        bar1: 256 << 20,
        ..NodeSpec::default()
    });
    let bar = read(&node.root, None).1.windows[0].bar.unwrap();
    let path = node.dir.path().join(format!(
        "sys/bus/pci/devices/0000:18:00.0/resource{bar}_resize"
    ));
    // 256 MiB and 128 GiB
    std::fs::write(path, "0000000000020100\n").unwrap();
    let small = findings(&read(&node.root, None).1);
    assert_eq!(small.len(), 8);
    assert!(small.iter().all(|f| f.id == "bar1.small"));
    assert!(
        small[0].evidence[1].ends_with("it could have 131072 MiB"),
        "{:?}",
        small[0]
    );
    assert!(small[1].fix.as_ref().unwrap().contains("Above 4G Decoding"));
}

/// A Resizable BAR capability written into the GPU's space: BAR 2 with 64 GiB (16) now, and 64 and 128 GiB supported.
#[test]
fn a_window_that_could_be_larger_by_its_capability() {
    let node = made(&NodeSpec {
        bar1: 64 << 30,
        ..NodeSpec::default()
    });
    let windows = read(&node.root, None).1.windows;
    let bar = u32::from(windows[0].bar.unwrap());
    assert!(windows[0].sizes.is_empty());
    let path = node
        .dir
        .path()
        .join("sys/bus/pci/devices/0000:18:00.0/config");
    let mut space = std::fs::read(&path).unwrap();
    let mut put = |at: usize, value: u32| space[at..at + 4].copy_from_slice(&value.to_le_bytes());
    // at the end of the chain, whatever the node has before it
    let mut last = 0x100;
    loop {
        let next = u32::from_le_bytes(
            std::fs::read(&path).unwrap()[last..last + 4]
                .try_into()
                .unwrap(),
        );
        if next >> 20 == 0 {
            put(last, next | 0x400 << 20);
            break;
        }
        last = (next >> 20) as usize;
    }
    put(0x400, 0x0001_0015);
    put(0x404, 0b11 << (4 + 16));
    put(0x408, 16 << 8 | 1 << 5 | bar);
    std::fs::write(&path, space).unwrap();
    let (_, gpus) = read(&node.root, None);
    assert_eq!(gpus.windows[0].sizes, [64 << 30, 128 << 30]);
    let found = findings(&gpus);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (found[0].id.as_str(), found[0].severity),
        ("bar1.small", Severity::Warning)
    );
    assert_eq!(
        found[0].evidence[1],
        "/sys/bus/pci/devices/0000:18:00.0/config: Resizable BAR: it could have 131072 MiB"
    );
}

/// nvidia-smi cannot be had without a GPU: a script stands in for one that hangs and one that has no driver.
#[test]
fn a_program_that_hangs_and_one_without_a_driver() {
    let node = made(&NodeSpec {
        tools: Some(Path::new(env!("CARGO_BIN_EXE_gdr-agent")).with_file_name("sample-node")),
        ..NodeSpec::default()
    });
    let put = |script: &str| {
        let path = node.dir.path().join("usr/bin/nvidia-smi");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    assert_eq!(
        read(&node.root, Some(Duration::from_secs(1))).1.smi,
        Asked::No
    );
    put("kill -STOP $$");
    let start = Instant::now();
    let told = std::cell::RefCell::new(Vec::new());
    let tell = |text: &str| told.borrow_mut().push(text.to_owned());
    let (_, hung) = read_telling(&node.root, Some(Duration::from_secs(2)), &tell);
    assert!(start.elapsed() < Duration::from_secs(15));
    assert_eq!(ids(&hung), ["gpu.smi-hung"]);
    // each second from the first on, and that it is over
    let told = told.take();
    assert_eq!(
        told[0],
        "nvidia-smi -q -x has been running for 1 s; it is stopped after 2"
    );
    assert_eq!(told.last().map(String::as_str), Some(""));
    put(
        "echo \"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\"; exit 9",
    );
    let (_, failed) = read(&node.root, Some(Duration::from_secs(10)));
    assert_eq!(ids(&failed), ["gpu.smi-failed"]);
    assert!(findings(&failed)[0].evidence[0].contains("couldn't communicate"));

    // What it said goes into a capture, with nothing in it by which a board could be known, and is there again.
    let noted = |script: &str| {
        put(script);
        let root = Root::open(node.dir.path()).unwrap().noting();
        let asked = read(&root, Some(Duration::from_secs(1))).1;
        let mut tree = root.noted();
        capture::clean(&mut tree, &capture::Redactor::default());
        let archive = capture::Archive {
            live: true,
            addresses: false,
            pid: None,
            tree,
            logs: Vec::new(),
            perftest: Vec::new(),
        };
        let packed = capture::pack(&archive).unwrap();
        let tree = capture::unpack(&packed).unwrap().tree;
        let said = tree
            .nodes
            .iter()
            .find(|(path, _)| path.ends_with("/nvidia-smi_-q_-x"));
        let text = match &said.unwrap().1.content {
            capture::Content::Whole(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            other => panic!("{other:?}"),
        };
        let root = Root::captured(Path::new("a.tar.zst"), tree, true).unwrap();
        let (_, replayed) = read(&root, None);
        assert_eq!(replayed, asked);
        (replayed, text)
    };
    let xml = "<nvidia_smi_log>\n<driver_version>570.1</driver_version>\n<gpu id=\"00000000:18:00.0\">\n\
               <serial>1652123000001</serial>\n<uuid>GPU-4f0a</uuid>\n<fb_memory_usage>\n<total>81559 MiB</total>\n\
               </fb_memory_usage>\n<process_name>/home/anna/train.py</process_name>\n</gpu>\n</nvidia_smi_log>";
    let (replayed, text) = noted(&format!("echo '{xml}'"));
    let smi = replayed.smi.get().unwrap();
    assert_eq!(smi.gpus[0].fb_mib, Some(81559));
    assert_eq!(smi.gpus[0].bdf.unwrap().to_string(), "0000:18:00.0");
    for gone in ["1652123000001", "GPU-4f0a", "anna"] {
        assert!(!text.contains(gone), "{text}");
    }
    assert_eq!(noted("kill -STOP $$").0.smi, Asked::Hung(1));
}

#[test]
fn the_matrix_beside_what_pci_shows() {
    let node = made(&NodeSpec::default());
    let (topology, _) = read(&node.root, None);
    let devices = rdma_devices(&node.root).value.unwrap();
    // as nvidia-smi would print it for this very node, from its paths
    let name = |bdf| {
        devices
            .iter()
            .find(|d| d.bdf == Some(bdf))
            .map(|d| d.name.clone())
    };
    let nics: Vec<(String, _)> = topology
        .nics
        .iter()
        .filter_map(|n| Some((name(n.bdf)?, n.bdf)))
        .collect();
    let mut text = String::from("\t\x1b[4m");
    text.push_str(&(0..8).map(|g| format!("GPU{g}\t")).collect::<String>());
    text.push_str(
        &(0..nics.len())
            .map(|n| format!("NIC{n}\t"))
            .collect::<String>(),
    );
    text.push_str("CPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n");
    for (g, gpu) in topology.gpus.iter().enumerate() {
        text.push_str(&format!("GPU{g}"));
        text.push_str(
            &(0..8)
                .map(|o| {
                    if o == g {
                        "\t X ".into()
                    } else {
                        "\tNV18".to_owned()
                    }
                })
                .collect::<String>(),
        );
        for (_, bdf) in &nics {
            let path = topology
                .paths
                .iter()
                .find(|p| p.gpu == gpu.bdf && p.nic == *bdf)
                .unwrap();
            text.push_str(&format!("\t{}", path.kind));
        }
        text.push_str("\t0-63\t0\t\tN/A\n");
    }
    text.push_str("\nNIC Legend:\n\n");
    text.push_str(
        &nics
            .iter()
            .enumerate()
            .map(|(n, (name, _))| format!("  NIC{n}: {name}\n"))
            .collect::<String>(),
    );
    let same = compare(
        &Matrix::read(text.as_bytes()).unwrap(),
        &topology,
        &[],
        &devices,
    );
    assert_eq!(same.compared, 8 * nics.len() as u64);
    assert!(same.differences.is_empty() && same.unmatched.is_empty() && same.finding().is_none());
    // in GPU0's row the first PIX becomes SYS
    let other = text.replacen("\tPIX", "\tSYS", 1);
    let other = compare(
        &Matrix::read(other.as_bytes()).unwrap(),
        &topology,
        &[],
        &devices,
    );
    assert_eq!(other.differences.len(), 1);
    let evidence = other.finding().unwrap().evidence;
    assert!(
        evidence[0].starts_with(
            "GPU0 (0000:18:00.0) - NIC0 (0000:19:00.0): nvidia-smi says SYS, PCI shows PIX"
        ),
        "{evidence:?}"
    );
    let unknown = text.replace(": mlx5_3", ": mlx5_77");
    let unknown = compare(
        &Matrix::read(unknown.as_bytes()).unwrap(),
        &topology,
        &[],
        &devices,
    );
    assert_eq!(unknown.unmatched, ["NIC3"]);
}

#[test]
fn a_fabric_that_is_not_ready_and_a_lost_gpu() {
    let xml = |inside: &str| {
        format!(
            "<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v12.dtd\">\n<nvidia_smi_log>\n<driver_version>570.1</driver_version>\n<gpu id=\"00000000:18:00.0\">{inside}</gpu></nvidia_smi_log>"
        )
    };
    let said = |inside: &str| Gpus {
        windows: Vec::new(),
        smi: Asked::Said(Smi::read(xml(inside).as_bytes()).unwrap()),
        topo: Asked::No,
    };
    assert_eq!(
        ids(&said(
            "<fabric><state>In Progress</state><status>N/A</status></fabric>"
        )),
        ["gpu.fabric"]
    );
    assert_eq!(
        ids(&said(
            "<fabric><state>Completed</state><status>Success</status></fabric>"
        )),
        [""; 0]
    );
    assert_eq!(
        ids(&said(
            "<bar1_memory_usage><total>[GPU requires reset]</total></bar1_memory_usage>"
        )),
        ["gpu.lost"]
    );
    assert_eq!(
        ids(&said("<persistence_mode>Disabled</persistence_mode>")),
        ["gpu.persistence-off"]
    );
    // a program that was stopped half way leaves half a document
    let half = xml("<a>1</a>");
    assert!(Smi::read(&half.as_bytes()[..half.len() - 20]).is_err());
    // entities that grow without end are refused
    let mut bomb = String::from(
        "<?xml version=\"1.0\"?><!DOCTYPE nvidia_smi_log [<!ENTITY a \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\">",
    );
    for (own, other) in "bcdefghijklmnop".chars().zip("abcdefghijklmno".chars()) {
        bomb.push_str(&format!(
            "<!ENTITY {own} \"{}\">",
            format!("&{other};").repeat(10)
        ));
    }
    bomb.push_str("]><nvidia_smi_log><x>&p;</x></nvidia_smi_log>");
    let start = Instant::now();
    assert!(Smi::read(bomb.as_bytes()).is_err());
    assert!(start.elapsed() < Duration::from_secs(5));
}

fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"<?xml version=\"1.0\"?><nvidia_smi_log>".to_vec()),
        Just(b"<gpu id=\"00000000:01:00.0\"><bar1_memory_usage><total>1 MiB</total></bar1_memory_usage></gpu>".to_vec()),
        Just(b"</nvidia_smi_log>".to_vec()),
        Just(b"GPU 00000000:04:00.0\n    FB Memory Usage\n        Total : 11172 MiB\n".to_vec()),
        Just(b"Driver Version : 384.59\n".to_vec()),
        Just(b"\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV1\tPIX\t0-3\t0\n".to_vec()),
        Just(b"NIC0: mlx5_0\n\x1b[4m".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_give_an_answer(bytes in pieces()) {
        if let Ok(smi) = Smi::read(&bytes) {
            let gpus = Gpus { windows: Vec::new(), smi: Asked::Said(smi), topo: Asked::No };
            let _ = findings(&gpus);
        }
        if let Some(matrix) = Matrix::read(&bytes) {
            prop_assert_eq!(matrix.rows.len(), matrix.names.len());
            let _ = compare(&matrix, &Topology::default(), &[], &[]);
        }
    }
}

#[test]
fn time_grows_with_the_size_and_no_faster() {
    for unit in [
        &b"<a>"[..],
        b"\n",
        b"GPU 00000000:04:00.0\n  a : b\n",
        b"GPU0 X ",
        b"    a\n",
        b"\x1b[",
        b"a : b\n",
    ] {
        growth::is_bounded(unit, 10_000, |bytes| {
            let _ = Smi::read(bytes);
            let _ = Smi::read(&[b"<nvidia_smi_log>", bytes].concat());
            let _ = Matrix::read(&[b"GPU0 GPU1 CPU\n", bytes].concat());
        });
    }
}
