//! The PCI tree, seen with other eyes than those that made it.

use super::super::layout::functions;
use super::super::{Cpu, Lockdown, NodeSpec};
use super::{node, path, program};

fn lspci(tree: &super::Tree, args: &[&str]) -> Option<String> {
    let option = format!("sysfs.path={}/sys/bus/pci", path(tree.root()));
    let all: Vec<&str> = [&["-A", "linux-sysfs", "-O", &option], args].concat();
    program("lspci", &all)
}

#[test]
fn lspci_sees_eight_gpus_each_beside_two_nics() {
    let (_dir, tree) = node(&NodeSpec::default());
    let Some(list) = lspci(&tree, &["-Dn"]) else {
        return;
    };
    let buses = |id: &str| {
        let lines = list.lines().filter(|line| line.contains(id));
        lines
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        buses(" 0302: 10de:2330"),
        [
            "0000:18:00.0",
            "0000:1a:00.0",
            "0000:3a:00.0",
            "0000:3c:00.0",
            "0000:9a:00.0",
            "0000:9c:00.0",
            "0000:ca:00.0",
            "0000:cc:00.0"
        ]
    );
    assert_eq!(buses(" 0207: 15b3:1021").len(), 8);
    assert_eq!(buses(" 0680: 10de:22a3").len(), 4);
    // a NIC and a disk that no policy means
    assert_eq!(
        buses(" 0200: 8086:1563").len() + buses(" 0108: 144d:a80a").len(),
        2
    );
}

#[test]
fn lspci_reads_acs_on_every_root_and_downstream_port_and_nowhere_else() {
    let (_dir, tree) = node(&NodeSpec::default());
    let Some(text) = lspci(&tree, &["-D", "-vvv"]) else {
        return;
    };
    let mut with_acs = 0;
    for function in text
        .split("\n\n")
        .filter(|function| !function.trim().is_empty())
    {
        let acs = function.contains(
            "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-",
        );
        let port = function.contains("(v2) Root Port") || function.contains("(v2) Downstream Port");
        assert_eq!(acs, port, "{function}");
        with_acs += usize::from(acs);
    }
    // 2 + 5 root ports, 5 switches of 4 ports
    assert_eq!(with_acs, 27);
}

#[test]
fn lspci_draws_the_switches_as_they_were_described() {
    let (_dir, tree) = node(&NodeSpec::default());
    let Some(text) = lspci(&tree, &["-t"]) else {
        return;
    };
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let at = lines
        .iter()
        .position(|line| line.contains("01.0-[16-1b]"))
        .unwrap();
    let expected = [
        "01.0-[16-1b]----00.0-[17-1b]--+-00.0-[18]----00.0",
        "+-01.0-[19]----00.0",
        "+-02.0-[1a]----00.0",
        "\\-03.0-[1b]----00.0",
    ];
    for (line, end) in lines.iter().skip(at).zip(expected) {
        assert!(line.ends_with(end), "{line}");
    }
}

#[test]
fn bar1_is_128_gib_and_its_bridges_let_it_through() {
    let (_dir, tree) = node(&NodeSpec::default());
    let Some(text) = lspci(&tree, &["-s", "1a:00.0", "-vv"]) else {
        return;
    };
    assert!(
        text.contains("Region 2: Memory at 226000000000 (64-bit, prefetchable) [size=128G]"),
        "{text}"
    );
    for bridge in ["15:01.0", "16:00.0", "17:02.0"] {
        let text = lspci(&tree, &["-s", bridge, "-vv"]).unwrap();
        let window = text
            .lines()
            .find(|line| line.contains("Prefetchable memory behind"))
            .unwrap();
        let range = window.split_whitespace().nth(4).unwrap();
        let (first, last) = range.split_once('-').unwrap();
        let number = |hex| u64::from_str_radix(hex, 16).unwrap();
        assert!(
            number(first) <= 0x2260_0000_0000 && 0x227f_ffff_ffff <= number(last),
            "{window}"
        );
    }
}

#[test]
fn links_in_sys_lead_where_they_should() {
    let (_dir, tree) = node(&NodeSpec::default());
    for function in functions(&NodeSpec::default()) {
        let bdf = &function.bdf;
        let real = std::fs::canonicalize(tree.at(&format!("sys/bus/pci/devices/{bdf}"))).unwrap();
        assert_eq!(real, std::fs::canonicalize(tree.at(&function.dir)).unwrap());
        let group = std::fs::canonicalize(real.join("iommu_group")).unwrap();
        assert!(group.join("devices").join(bdf).join("vendor").exists());
        if let Some(driver) = function.model.driver {
            let there = std::fs::canonicalize(real.join("driver")).unwrap();
            assert!(there.ends_with(format!("bus/pci/drivers/{driver}")));
            assert_eq!(std::fs::canonicalize(there.join(bdf)).unwrap(), real);
        }
        assert!(real.join("subsystem/devices").join(bdf).exists());
    }
    assert!(tree.exists("sys/class/infiniband/mlx5_7/device/vendor"));
    assert!(tree.exists("sys/class/dmi/id/product_name"));
    assert!(tree.exists("sys/class/iommu/dmar0/intel-iommu/version"));
}

#[test]
fn firmware_tables_add_up() {
    for (cpu, name) in [(Cpu::Intel, "DMAR"), (Cpu::Amd, "IVRS")] {
        let (_dir, tree) = node(&NodeSpec {
            cpu,
            ..NodeSpec::default()
        });
        let table = tree
            .read(&format!("sys/firmware/acpi/tables/{name}"))
            .unwrap();
        assert!(table.starts_with(name.as_bytes()));
        assert_eq!(
            u32::from_le_bytes(table[4..8].try_into().unwrap()) as usize,
            table.len()
        );
        assert_eq!(
            table.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)),
            0
        );
    }
}

#[test]
fn each_bend_shows() {
    let spec = NodeSpec {
        nics: false,
        hypervisor: true,
        lockdown: Lockdown::Integrity,
        config_len: 256,
        bar1: 256 << 20,
        policy: None,
        ..NodeSpec::default()
    };
    let (_dir, tree) = node(&spec);
    assert!(!tree.exists("sys/class/infiniband"));
    assert!(tree.text("proc/cpuinfo").unwrap().contains(" hypervisor "));
    assert_eq!(tree.text("sys/class/dmi/id/sys_vendor").unwrap(), "QEMU\n");
    assert!(
        tree.text("sys/kernel/security/lockdown")
            .unwrap()
            .contains("[integrity]")
    );
    assert!(!tree.exists("etc/gdr-agent/policy.toml"));
    let gpu = "sys/bus/pci/devices/0000:18:00.0";
    assert_eq!(tree.read(&format!("{gpu}/config")).unwrap().len(), 256);
    let resource = tree.text(&format!("{gpu}/resource")).unwrap();
    let bar1: Vec<&str> = resource.lines().nth(2).unwrap().split(' ').collect();
    let number = |hex: &str| u64::from_str_radix(hex.trim_start_matches("0x"), 16).unwrap();
    assert_eq!(number(bar1[1]) - number(bar1[0]) + 1, 256 << 20);
}

#[test]
fn spare_ports_are_ports_too() {
    let (_dir, tree) = node(&NodeSpec {
        spare_ports: 8,
        ..NodeSpec::default()
    });
    let Some(text) = lspci(&tree, &["-vvv"]) else {
        return;
    };
    // 7 root ports, 5 switches of 12 ports
    assert_eq!(text.matches("ACSCtl:").count(), 67);
}

#[test]
fn ports_without_acs_have_no_capability() {
    let (_dir, tree) = node(&NodeSpec {
        acs: false,
        ..NodeSpec::default()
    });
    let Some(text) = lspci(&tree, &["-vvv"]) else {
        return;
    };
    assert!(text.contains("Advanced Error Reporting") && !text.contains("Access Control Services"));
}
