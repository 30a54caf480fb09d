//! Reading and writing a sysfs tree: nothing is read that changes the answer, nothing is written
//! that was not planned, and setpci does the same with the lines that we print.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::layout::{METAL, Machine, selectors};
use crate::support::{Space, have, port, sysfs};
use gdr_agent::facts::pci::{Depth, functions};
use gdr_agent::pci::clear::{AcsPlan, Request, Scope, plan};
use gdr_agent::pci::select::Selectors;
use gdr_agent::pci::topology::Topology;
use gdr_agent::pci::tree::Tree;
use gdr_agent::pci::{Bdf, RawFunction};
use gdr_agent::sys::Root;
use gdr_agent::sys::pci_config::{ConfigError, ConfigFile};
use proptest::prelude::*;

fn decide(functions: &[RawFunction], scope: Scope) -> (Topology, AcsPlan) {
    let tree = Tree::build(functions);
    let topology = Topology::of(&tree, selectors());
    let request = Request { scope, mask: 0x2c };
    let plan = plan(&tree, &topology, request, METAL);
    (topology, plan)
}

fn write_out(machine: &Machine) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    for truth in machine.all.values() {
        let path = machine.paths.then(|| machine.sysfs_path(truth.bdf));
        sysfs::write(
            dir.path(),
            truth.bdf,
            path.as_deref(),
            machine.shown_config(truth),
        );
        let entry = dir
            .path()
            .join("sys/bus/pci/devices")
            .join(truth.bdf.to_string());
        std::fs::write(entry.join("numa_node"), format!("{}\n", truth.node)).unwrap();
    }
    let root = Root::open(dir.path()).unwrap();
    (dir, root)
}

fn configs(dir: &Path, machine: &Machine) -> BTreeMap<Bdf, Vec<u8>> {
    let read = |bdf: Bdf| {
        let entry = dir.join("sys/bus/pci/devices").join(bdf.to_string());
        std::fs::read(entry.join("config")).unwrap()
    };
    machine.all.keys().map(|bdf| (*bdf, read(*bdf))).collect()
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..200)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn reading_only_what_is_needed_gives_the_same_answers(choices in choices()) {
        let machine = Machine::random(&choices, false);
        let (_dir, root) = write_out(&machine);
        let (topology, paths) = decide(&machine.functions(), Scope::Paths);
        let (_, all) = decide(&machine.functions(), Scope::All);

        for depth in [Depth::Everything, Depth::Topology(selectors())] {
            let read = functions(&root, &depth).unwrap();
            let (got, got_plan) = decide(&read, Scope::Paths);
            prop_assert_eq!(&got, &topology);
            prop_assert_eq!(&got_plan, &paths);
        }
        for endpoints in [false, true] {
            let depth = Depth::Acs { selectors: selectors(), endpoints };
            let read = functions(&root, &depth).unwrap();
            prop_assert_eq!(&decide(&read, Scope::Paths).1, &paths);
            if endpoints {
                prop_assert_eq!(&decide(&read, Scope::All).1, &all);
            }
            let most = read.iter().map(|function| function.config.len()).max().unwrap_or(0);
            prop_assert!(most <= 80, "{most} bytes of configuration space were read of one function");
        }
    }

    #[test]
    fn clear_then_restore_leaves_every_byte_as_it_was(choices in choices()) {
        let machine = Machine::random(&choices, false);
        let (dir, root) = write_out(&machine);
        let before = configs(dir.path(), &machine);
        let depth = Depth::Acs { selectors: selectors(), endpoints: false };
        let read = functions(&root, &depth).unwrap();
        let tree = Tree::build(&read);
        let (_, plan) = decide(&read, Scope::Paths);
        let outcomes = gdr_agent::acs::clear(&root, &tree, &plan).unwrap();
        prop_assert_eq!(outcomes.len(), plan.to_clear().count());

        let mut expected = before.clone();
        for port in plan.to_clear() {
            let at = usize::from(port.offset.unwrap()) + 6;
            let bytes = expected.get_mut(&port.bdf).unwrap();
            bytes[at..at + 2].copy_from_slice(&port.new.unwrap().to_le_bytes());
        }
        prop_assert_eq!(&configs(dir.path(), &machine), &expected);

        let read = functions(&root, &depth).unwrap();
        let tree = Tree::build(&read);
        prop_assert_eq!(decide(&read, Scope::Paths).1.to_clear().count(), 0);
        let decisions = gdr_agent::acs::restore_plan(&root, &tree).unwrap();
        let outcomes = gdr_agent::acs::restore(&root, &decisions).unwrap();
        prop_assert!(outcomes.iter().all(|outcome| outcome.result.is_ok()));
        prop_assert_eq!(&configs(dir.path(), &machine), &before);
        prop_assert!(!dir.path().join("var/lib/gdr-agent/acs/saved.json").exists());
    }
}

fn a_big_machine() -> Machine {
    let mut best = Machine::random(&[], false);
    for seed in 0..200_u32 {
        let bytes: Vec<u8> = crate::support::noise(seed).take(400).collect();
        let machine = Machine::random(&bytes, false);
        let ports = |m: &Machine| decide(&m.functions(), Scope::Paths).1.to_clear().count();
        if ports(&machine) > ports(&best) {
            best = machine;
        }
    }
    best
}

#[test]
fn setpci_does_the_same_with_the_lines_that_we_print() {
    if !have("setpci") {
        return;
    }
    let machine = a_big_machine();
    let (by_hand, _) = write_out(&machine);
    let (by_us, root) = write_out(&machine);
    let read = functions(&root, &Depth::Topology(selectors())).unwrap();
    let tree = Tree::build(&read);
    let (_, plan) = decide(&read, Scope::Paths);
    assert!(
        plan.to_clear().count() >= 8,
        "only {} ports",
        plan.to_clear().count()
    );

    gdr_agent::acs::clear(&root, &tree, &plan).unwrap();
    for port in plan.to_clear() {
        let line = port.setpci.as_deref().unwrap();
        let arguments: Vec<&str> = line.split(' ').skip(1).collect();
        let tree = by_hand.path().join("sys/bus/pci");
        let output = std::process::Command::new("setpci")
            .args(["-A", "linux-sysfs", "-O"])
            .arg(format!("sysfs.path={}", tree.display()))
            .args(&arguments)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    assert_eq!(
        configs(by_hand.path(), &machine),
        configs(by_us.path(), &machine)
    );
}

fn one_port(config: &[u8]) -> (tempfile::TempDir, Root, Bdf) {
    let dir = tempfile::tempdir().unwrap();
    let bdf = "0000:17:00.0".parse().unwrap();
    sysfs::write(dir.path(), bdf, None, config);
    let root = Root::open(dir.path()).unwrap();
    (dir, root, bdf)
}

fn downstream(ctl: u16) -> Vec<u8> {
    Space::new(0x1000, 0xc030, 0x06_0400, port::DOWNSTREAM)
        .bridge(0x16, 0x17, 0x17)
        .acs(0x7f, ctl)
        .bytes()
}

const ACS: (u16, u16, u16) = (0x0d, 0x100, 6);

#[test]
fn a_masked_write_touches_two_bytes() {
    let config = downstream(0xff1d);
    let (dir, root, bdf) = one_port(&config);
    let file = ConfigFile::open_writable(&root, bdf).unwrap();
    let written = file.set_bits(ACS, 0x2c, 0).unwrap();
    assert_eq!((written.old, written.new), (0xff1d, 0xff11));
    let after = std::fs::read(dir.path().join("sys/bus/pci/devices/0000:17:00.0/config")).unwrap();
    let changed: Vec<usize> = (0..4096).filter(|i| config[*i] != after[*i]).collect();
    assert_eq!(changed, [0x106]);
    assert_eq!(file.set_bits(ACS, 0x2c, 0x0c).unwrap().new, 0xff1d);
}

#[test]
fn a_register_that_is_not_there_is_not_written() {
    // Another capability at that place: the device was exchanged since it was looked at.
    let config = downstream(0x1d);
    let (_dir, root, bdf) = one_port(&config);
    let file = ConfigFile::open_writable(&root, bdf).unwrap();
    let moved = file.set_bits((0x0d, 0x40, 6), 0x2c, 0).unwrap_err();
    assert_eq!(moved.kind(), "vanished");
    assert!(ConfigFile::open_writable(&root, "0000:99:00.0".parse().unwrap()).is_err());

    let (_dir, root, bdf) = one_port(&config[..256]);
    let file = ConfigFile::open_writable(&root, bdf).unwrap();
    let short = file.set_bits(ACS, 0x2c, 0).unwrap_err();
    assert!(
        matches!(short, ConfigError::Short { offset: 0x106, .. }),
        "{short}"
    );

    let (_dir, root, bdf) = one_port(&[0xff; 4096]);
    let file = ConfigFile::open_writable(&root, bdf).unwrap();
    assert_eq!(file.set_bits(ACS, 0x2c, 0).unwrap_err().kind(), "vanished");
}

#[test]
fn a_saved_word_never_reaches_another_device() {
    let (dir, root, bdf) = one_port(&downstream(0x1d));
    let selectors = Selectors {
        gpu: &|_, _, _| false,
        nic: &|_, _, _| false,
    };
    let depth = Depth::Acs {
        selectors,
        endpoints: false,
    };
    let read = functions(&root, &depth).unwrap();
    let tree = Tree::build(&read);
    let (_, plan) = decide(&read, Scope::Bridges);
    assert_eq!(gdr_agent::acs::clear(&root, &tree, &plan).unwrap().len(), 1);

    // Another card took the bus number.
    let other = Space::new(0x8086, 0x1234, 0x06_0400, port::DOWNSTREAM)
        .acs(0x7f, 0)
        .bytes();
    std::fs::remove_dir_all(dir.path().join("sys")).unwrap();
    sysfs::write(dir.path(), bdf, None, &other);
    let read = functions(&root, &depth).unwrap();
    let tree = Tree::build(&read);
    let decisions = gdr_agent::acs::restore_plan(&root, &tree).unwrap();
    assert_eq!(decisions.len(), 1);
    assert!(
        gdr_agent::acs::restore(&root, &decisions)
            .unwrap()
            .is_empty()
    );
    let config = dir.path().join("sys/bus/pci/devices/0000:17:00.0/config");
    assert_eq!(std::fs::read(config).unwrap(), other);
    assert!(dir.path().join("var/lib/gdr-agent/acs/saved.json").exists());
}

#[test]
fn a_damaged_file_of_old_words_stops_everything() {
    let (dir, root, _) = one_port(&downstream(0x1d));
    let read = functions(&root, &Depth::Everything).unwrap();
    let tree = Tree::build(&read);
    let (_, plan) = decide(&read, Scope::Bridges);
    let folder = dir.path().join("var/lib/gdr-agent/acs");
    std::fs::create_dir_all(&folder).unwrap();
    for text in ["", "{}", "{\"version\":2,\"ports\":[]}", "[1"] {
        std::fs::write(folder.join("saved.json"), text).unwrap();
        let error = gdr_agent::acs::clear(&root, &tree, &plan).unwrap_err();
        assert!(error.to_string().contains("cannot be used"), "{error}");
    }
    let config = dir.path().join("sys/bus/pci/devices/0000:17:00.0/config");
    assert_eq!(std::fs::read(config).unwrap(), downstream(0x1d));
}

#[test]
fn no_pci_at_all_is_an_empty_list() {
    let dir = tempfile::tempdir().unwrap();
    let root = Root::open(dir.path()).unwrap();
    assert!(functions(&root, &Depth::Everything).unwrap().is_empty());
}
