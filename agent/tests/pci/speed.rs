//! The bars for speed, on a machine of 2,000 functions: eight GPUs, sixteen NICs with their virtual
//! functions, and the uncore devices of two big processors. Unoptimised builds get ten times as long.

use std::path::Path;
use std::time::Duration;

use crate::support::layout::{GPU, METAL, NIC, OTHER, selectors};
use crate::support::{Space, port, raw, sysfs};
use gdr_agent::facts::pci::{Depth, functions};
use gdr_agent::pci::clear::{Request, Scope, plan};
use gdr_agent::pci::topology::Topology;
use gdr_agent::pci::tree::Tree;
use gdr_agent::pci::{Bdf, RawFunction};
use gdr_agent::sys::Root;

/// Address, path below `/sys` and configuration space of each function.
fn server(total: usize) -> Vec<(Bdf, String, Vec<u8>)> {
    let mut list = Vec::new();
    for host in 0..8_u8 {
        let base = host * 32;
        let root = format!("devices/pci0000:{base:02x}/0000:{base:02x}:01.0");
        let bridge = |port, bus: u8, below: u8| {
            let space = Space::new(0x1000, 0xc030, 0x06_0400, port).bridge(bus, below, base + 31);
            space.aer().acs(0x7f, 0x1d).bytes()
        };
        let bdf = |bus: u8, device: u8| Bdf::new(0, bus, device, 0);
        list.push((
            bdf(base, 1),
            root.clone(),
            bridge(port::ROOT, base, base + 1),
        ));
        let up = format!("{root}/0000:{:02x}:00.0", base + 1);
        list.push((
            bdf(base + 1, 0),
            up.clone(),
            bridge(port::UPSTREAM, base + 1, base + 2),
        ));
        for slot in 0..8_u8 {
            let (bus, below) = (base + 2, base + 3 + slot);
            let down = format!("{up}/0000:{bus:02x}:{slot:02x}.0");
            list.push((
                bdf(bus, slot),
                down.clone(),
                bridge(port::DOWNSTREAM, bus, below),
            ));
            let (id, class) = match slot {
                0 => (GPU, 0x03_0200),
                1 | 2 => (NIC, 0x02_0700),
                _ => (OTHER, 0x01_0802),
            };
            let device = Space::new(id.0, id.1, class, port::ENDPOINT).aer().bytes();
            list.push((
                bdf(below, 0),
                format!("{down}/0000:{below:02x}:00.0"),
                device,
            ));
        }
    }
    let uncore = Space::new(0x8086, 0x3250, 0x08_8000, 9).bytes();
    for index in 0.. {
        if list.len() >= total {
            return list;
        }
        let (domain, bus) = (1 + index / 200_u32, 0x80 + (index % 200 / 100) as u8);
        let (device, function) = ((index % 100 / 8) as u8, (index % 8) as u8);
        let bdf = Bdf::new(domain, bus, device, function);
        if !list.iter().any(|(other, ..)| *other == bdf) {
            list.push((
                bdf,
                format!("devices/pci{domain:04x}:{bus:02x}/{bdf}"),
                uncore.clone(),
            ));
        }
    }
    list
}

/// The shortest of a few runs, in processor time: the work is one thread that waits for nothing, and
/// the machine may be busy with other tests.
fn best<T>(mut work: impl FnMut() -> T) -> Duration {
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(
            time.tv_sec.unsigned_abs(),
            u32::try_from(time.tv_nsec).unwrap(),
        )
    };
    let time = || {
        let start = now();
        std::hint::black_box(work());
        now() - start
    };
    std::iter::repeat_with(time).take(5).min().unwrap()
}

fn allowed(optimised: Duration) -> Duration {
    if cfg!(debug_assertions) {
        optimised * 10
    } else {
        optimised
    }
}

fn write_out(list: &[(Bdf, String, Vec<u8>)], to: &Path) {
    for (bdf, path, config) in list {
        sysfs::write(to, *bdf, Some(path), config);
    }
}

#[test]
fn topology_of_2000_functions_takes_less_than_50_ms() {
    let list = server(2000);
    let dir = tempfile::tempdir().unwrap();
    write_out(&list, dir.path());
    let root = Root::open(dir.path()).unwrap();
    let depth = Depth::Topology(selectors());
    let whole = || {
        let functions = functions(&root, &depth).unwrap();
        let topology = Topology::of(&Tree::build(&functions), selectors());
        assert_eq!((topology.gpus.len(), topology.nics.len()), (8, 16));
        topology.paths.len()
    };
    let read = best(|| functions(&root, &depth).unwrap());
    let took = best(whole);
    println!("2,000 functions: {read:?} to read, {took:?} with the topology");
    assert!(took < allowed(Duration::from_millis(50)), "{took:?}");
}

#[test]
fn deciding_about_and_clearing_64_ports_takes_milliseconds() {
    let list = server(160);
    let dir = tempfile::tempdir().unwrap();
    write_out(&list, dir.path());
    let root = Root::open(dir.path()).unwrap();
    let depth = Depth::Acs {
        selectors: selectors(),
        endpoints: false,
    };
    let request = Request {
        scope: Scope::Bridges,
        mask: 0x2c,
    };
    let decide = |read: &[RawFunction]| {
        let tree = Tree::build(read);
        let topology = Topology::of(&tree, selectors());
        plan(&tree, &topology, request, METAL)
    };
    let read = functions(&root, &depth).unwrap();
    let ports = decide(&read).to_clear().count();
    assert_eq!(ports, 8 * 9);
    let tree = Tree::build(&read);
    let decision = decide(&read);
    // The first run writes the old words to disk, later ones find them there, as at every boot.
    gdr_agent::acs::clear(&root, &tree, &decision).unwrap();
    let clearing = best(|| {
        gdr_agent::acs::clear(&root, &tree, &decision)
            .unwrap()
            .len()
    });
    let reading = best(|| decide(&functions(&root, &depth).unwrap()).ports.len());
    println!("{ports} ports: {reading:?} to read and decide, {clearing:?} to write and read back");
    assert!(clearing < allowed(Duration::from_millis(3)), "{clearing:?}");
    assert!(reading < allowed(Duration::from_millis(10)), "{reading:?}");
}

#[test]
fn time_grows_with_the_number_of_functions_and_no_faster() {
    let many: Vec<RawFunction> = server(8000)
        .into_iter()
        .map(|(bdf, path, config)| raw(bdf, Some(path), &config))
        .collect();
    let topology = |list: &[RawFunction]| Topology::of(&Tree::build(list), selectors()).paths.len();
    let (few, all) = (best(|| topology(&many[..2000])), best(|| topology(&many)));
    println!("topology in memory: {few:?} for 2,000 functions, {all:?} for 8,000");
    // Four times as many; quadratic work would take sixteen times as long.
    assert!(
        all < few * 9 + Duration::from_millis(2),
        "{few:?} and {all:?}"
    );
}
