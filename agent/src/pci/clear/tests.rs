use super::*;
use crate::pci::select::Selectors;
use crate::pci::{ConfigBytes, RawFunction};

const METAL: Conditions = Conditions {
    in_vm: Some(false),
    lockdown: Lockdown::None,
    iommu: Some(true),
    live: true,
};

/// Header, PCI Express capability with this port type, and ACS at 0x100 unless `ctl` is `None`.
fn config(port: u8, ctl: Option<u16>) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    bytes[0] = 1;
    bytes[6] = 0x10;
    bytes[0x34] = 0x40;
    bytes[0x40] = 0x10;
    bytes[0x42] = 0x02 | port << 4;
    if let Some(ctl) = ctl {
        bytes[0x100..0x104].copy_from_slice(&0x0001_000d_u32.to_le_bytes());
        bytes[0x104] = 0x7f;
        bytes[0x106..0x108].copy_from_slice(&ctl.to_le_bytes());
    }
    bytes
}

fn function(path: &str, id: (u16, u16), class: u32, config: &[u8]) -> RawFunction {
    let bdf = path.rsplit('/').next().unwrap().parse().unwrap();
    RawFunction {
        sysfs_path: Some(path.to_owned()),
        vendor: Some(id.0),
        device: Some(id.1),
        class: Some(class),
        config: ConfigBytes::whole(config),
        ..RawFunction::bare(bdf)
    }
}

const PORT: u32 = 0x06_0400;
const SWITCH: (u16, u16) = (0x1000, 0xc030);

/// One root port, one switch, and below it a GPU, a NIC and an NVMe drive.
fn machine() -> Vec<RawFunction> {
    let root = "devices/pci0000:15/0000:15:01.0";
    let up = &format!("{root}/0000:16:00.0");
    let down = |n: u8| format!("{up}/0000:17:{n:02x}.0");
    vec![
        function(root, (0x8086, 0x352a), PORT, &config(4, Some(0x1d))),
        function(up, SWITCH, PORT, &config(5, None)),
        function(&down(0), SWITCH, PORT, &config(6, Some(0x1d))),
        function(&down(1), SWITCH, PORT, &config(6, Some(0x3d))),
        function(&down(2), SWITCH, PORT, &config(6, Some(0x1d))),
        function(
            &format!("{}/0000:18:00.0", down(0)),
            (0x10de, 0x2330),
            0x03_0200,
            &config(0, None),
        ),
        function(
            &format!("{}/0000:19:00.0", down(1)),
            (0x15b3, 0x1021),
            0x02_0700,
            &config(0, Some(0x0c)),
        ),
        function(
            &format!("{}/0000:1a:00.0", down(2)),
            (0x144d, 0xa80a),
            0x01_0802,
            &config(0, None),
        ),
    ]
}

fn decide(functions: &[RawFunction], scope: Scope, mask: u16, conditions: Conditions) -> AcsPlan {
    let tree = Tree::build(functions);
    let selectors = Selectors {
        gpu: &|vendor, _, class| vendor == 0x10de && class == 0x0302,
        nic: &|vendor, _, class| vendor == 0x15b3 && class == 0x0207,
    };
    let topology = Topology::of(&tree, selectors);
    plan(&tree, &topology, Request { scope, mask }, conditions)
}

fn actions(plan: &AcsPlan) -> Vec<(String, Action)> {
    plan.ports
        .iter()
        .map(|port| (port.bdf.to_string(), port.action))
        .collect()
}

fn cleared(plan: &AcsPlan) -> Vec<String> {
    plan.to_clear().map(|port| port.bdf.to_string()).collect()
}

#[test]
fn only_the_ports_of_the_path() {
    let plan = decide(&machine(), Scope::Paths, 0x2c, METAL);
    let expected = [
        ("0000:15:01.0", Action::OffPath),
        ("0000:16:00.0", Action::OffPath),
        ("0000:17:00.0", Action::Clear),
        ("0000:17:01.0", Action::Clear),
        ("0000:17:02.0", Action::OffPath),
    ];
    assert_eq!(
        actions(&plan),
        expected.map(|(bdf, action)| (bdf.to_owned(), action))
    );
    let port = &plan.ports[2];
    assert_eq!(
        (port.offset, port.ctl, port.new),
        (Some(0x100), Some(0x1d), Some(0x11))
    );
    let line = "setpci -s 0000:17:00.0 ECAP_ACS+0x6.w=0000:002c";
    assert_eq!(port.setpci.as_deref(), Some(line));
    assert!(plan.refusals.is_empty() && plan.notes.is_empty());
}

#[test]
fn the_mask_limits_what_is_cleared_and_never_reaches_beyond_redirect_bits() {
    let plan = decide(&machine(), Scope::Paths, 0x04, METAL);
    assert_eq!(plan.ports[3].new, Some(0x39));
    assert!(
        plan.ports[3]
            .setpci
            .as_deref()
            .unwrap()
            .ends_with("=0000:0004")
    );
    let plan = decide(&machine(), Scope::Paths, 0xffff, METAL);
    assert_eq!(plan.ports[3].new, Some(0x11));
    assert_eq!(plan.notes.len(), 1);
}

#[test]
fn wider_and_narrower_scopes() {
    let bridges = decide(&machine(), Scope::Bridges, 0x2c, METAL);
    let four = [
        "0000:15:01.0",
        "0000:17:00.0",
        "0000:17:01.0",
        "0000:17:02.0",
    ];
    assert_eq!(cleared(&bridges), four);
    let all = decide(&machine(), Scope::All, 0x2c, METAL);
    assert_eq!(cleared(&all), [&four[..], &["0000:19:00.0"]].concat());
    let keep = decide(&machine(), Scope::Keep, 0x2c, METAL);
    assert!(cleared(&keep).is_empty());
    assert!(keep.notes[0].contains("keeps ACS"));
}

#[test]
fn a_virtual_machine_and_lockdown_refuse_everything() {
    for (conditions, id) in [
        (
            Conditions {
                in_vm: Some(true),
                ..METAL
            },
            "acs.in-vm",
        ),
        (
            Conditions {
                in_vm: None,
                ..METAL
            },
            "acs.in-vm",
        ),
        (
            Conditions {
                lockdown: Lockdown::Integrity,
                ..METAL
            },
            "acs.lockdown",
        ),
        (
            Conditions {
                lockdown: Lockdown::Confidentiality,
                ..METAL
            },
            "acs.lockdown",
        ),
    ] {
        let plan = decide(&machine(), Scope::Paths, 0x2c, conditions);
        assert!(cleared(&plan).is_empty(), "{conditions:?}");
        assert_eq!(plan.refusals.len(), 1);
        assert_eq!(plan.refusals[0].id, id);
        assert_eq!(plan.ports[2].action, Action::Refused);
        // What would be done by hand stays visible.
        assert!(plan.ports[2].setpci.is_some());
    }
    let offline = Conditions {
        in_vm: None,
        live: false,
        ..METAL
    };
    let plan = decide(&machine(), Scope::Paths, 0x2c, offline);
    assert_eq!((cleared(&plan).len(), plan.notes.len()), (2, 1));
    let unsure = Conditions {
        lockdown: Lockdown::Unknown,
        ..METAL
    };
    assert_eq!(
        cleared(&decide(&machine(), Scope::Paths, 0x2c, unsure)).len(),
        2
    );
}

#[test]
fn nothing_to_clear_is_nothing_to_refuse() {
    let mut functions = machine();
    for function in &mut functions[2..4] {
        function.config = ConfigBytes::whole(&config(6, Some(0x11)));
    }
    let plan = decide(
        &functions,
        Scope::Paths,
        0x2c,
        Conditions {
            in_vm: Some(true),
            ..METAL
        },
    );
    assert!(plan.refusals.is_empty());
    assert_eq!(plan.ports[2].action, Action::AlreadyClear);
}

#[test]
fn a_port_above_a_passthrough_device_is_refused_and_the_others_are_not() {
    for driver in ["vfio-pci", "mlx5_vfio_pci", "xen-pciback"] {
        let mut functions = machine();
        functions[6].driver = Some(driver.to_owned());
        let plan = decide(&functions, Scope::Bridges, 0x2c, METAL);
        assert_eq!(cleared(&plan), ["0000:17:00.0", "0000:17:02.0"], "{driver}");
        let refused: Vec<_> = plan
            .refusals
            .iter()
            .map(|r| (r.id.as_str(), r.bdf.unwrap()))
            .collect();
        let ports = ["0000:15:01.0", "0000:17:01.0"].map(|bdf| ("acs.vfio", bdf.parse().unwrap()));
        assert_eq!(refused, ports);
    }
}

#[test]
fn platforms_that_need_acs_are_left_alone() {
    let mut grace = machine();
    grace[0].vendor = Some(0x10de);
    grace[0].device = Some(0x22b2);
    let plan = decide(&grace, Scope::Paths, 0x2c, METAL);
    assert_eq!(plan.ports[2].action, Action::LeftAlone);
    assert!(plan.ports[2].reason.contains("NVIDIA CPU"));
    assert_eq!(plan.findings[0].id, "acs.nvidia-cpu");
    assert!(plan.refusals.is_empty());

    let mut data_direct = machine();
    data_direct[7].vendor = Some(0x15b3);
    data_direct[7].device = Some(0x2100);
    let plan = decide(&data_direct, Scope::Paths, 0x2c, METAL);
    assert_eq!(plan.ports[3].action, Action::LeftAlone);
    assert!(plan.ports[3].reason.contains("Data Direct"));
    assert_eq!(plan.findings[0].id, "acs.data-direct");
}

/// ATS at 0x180, behind whatever is at 0x100.
fn with_ats(mut bytes: Vec<u8>) -> Vec<u8> {
    let first = u32::from_le_bytes(bytes[0x100..0x104].try_into().unwrap());
    let first = if first == 0 { 0x0001_0001 } else { first };
    bytes[0x100..0x104].copy_from_slice(&(first | 0x180 << 20).to_le_bytes());
    bytes[0x180..0x184].copy_from_slice(&0x0001_000f_u32.to_le_bytes());
    bytes
}

#[test]
fn a_connectx_with_ats_is_a_host_of_virtual_machines() {
    let mut host = machine();
    host[6].config = ConfigBytes::whole(&with_ats(config(0, Some(0x0c))));
    for scope in [Scope::Paths, Scope::Bridges, Scope::All] {
        let plan = decide(&host, scope, 0x2c, METAL);
        assert!(cleared(&plan).is_empty(), "{scope:?}");
        assert_eq!((plan.findings.len(), plan.refusals.len()), (1, 0));
        assert_eq!(plan.findings[0].id, "acs.virtualised");
        assert!(plan.findings[0].fix.contains("Direct Translated"));
        assert!(plan.findings[0].ports.contains(&plan.ports[3].bdf));
    }
    // In a guest it is the host's doing.
    let guest = Conditions {
        in_vm: Some(true),
        ..METAL
    };
    let plan = decide(&host, Scope::Paths, 0x2c, guest);
    assert_eq!(
        (plan.findings.len(), plan.refusals[0].id.as_str()),
        (0, "acs.in-vm")
    );
    // A GPU has it anyway, and so have BlueFields and other vendors' NICs.
    let mut bluefield = host;
    bluefield[6].device = Some(0xa2dc);
    assert_eq!(
        cleared(&decide(&bluefield, Scope::Paths, 0x2c, METAL)).len(),
        2
    );
    let mut other = machine();
    other[5].config = ConfigBytes::whole(&with_ats(config(0, None)));
    assert_eq!(cleared(&decide(&other, Scope::Paths, 0x2c, METAL)).len(), 2);
}

#[test]
fn without_an_iommu_the_bits_are_the_firmwares_and_are_cleared_all_the_same() {
    let off = Conditions {
        iommu: Some(false),
        ..METAL
    };
    let plan = decide(&machine(), Scope::Paths, 0x2c, off);
    assert_eq!(cleared(&plan).len(), 2);
    assert_eq!(plan.findings[0].id, "acs.iommu-off");
    let clear = decide(&machine(), Scope::Keep, 0x2c, off);
    assert!(clear.findings.is_empty());
}

#[test]
fn unreadable_and_absent_are_two_things() {
    let mut functions = machine();
    functions[2].config = ConfigBytes::whole(&config(6, Some(0x1d))[..256]);
    functions[3].config = ConfigBytes::whole(&config(6, None));
    let plan = decide(&functions, Scope::Paths, 0x2c, METAL);
    assert_eq!(plan.ports[2].action, Action::Unknown);
    assert!(plan.ports[2].reason.contains("ends at byte 256"));
    assert_eq!(plan.ports[3].action, Action::NoCapability);
}

#[test]
fn no_pairs_is_said() {
    let functions = &machine()[..6];
    let plan = decide(functions, Scope::Paths, 0x2c, METAL);
    assert!(cleared(&plan).is_empty());
    assert_eq!(plan.findings[0].id, "acs.no-devices");
    assert!(plan.findings[0].text.contains("no NIC matches"));
}
