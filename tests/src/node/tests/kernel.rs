//! What the made-up kernel makes of its command line.

use super::super::cmdline::{Iommu, iommu, parameters};
use super::super::grub::Firmware;
use super::super::{Cpu, NodeSpec, Reboot, Tree, mkconfig, reboot};
use super::node;

/// Puts `args` on the default entry and reboots.
fn reboot_with(tree: &Tree, args: &str) {
    tree.file(
        "etc/default/grub.d/test.cfg",
        format!("GRUB_CMDLINE_LINUX_DEFAULT=\"{args}\"\n"),
    )
    .unwrap();
    mkconfig::regenerate(tree, None).unwrap();
    reboot(
        tree.root(),
        Reboot {
            firmware: Firmware::default(),
            dies: false,
        },
    )
    .unwrap();
}

fn control(tree: &Tree, bdf: &str) -> u16 {
    let config = tree
        .read(&format!("sys/bus/pci/devices/{bdf}/config"))
        .unwrap();
    u16::from_le_bytes([config[0x14e], config[0x14f]])
}

fn set_control(tree: &Tree, bdf: &str, value: u16) {
    let path = format!("sys/bus/pci/devices/{bdf}/config");
    let mut config = tree.read(&path).unwrap();
    config[0x14e..0x150].copy_from_slice(&value.to_le_bytes());
    tree.file(&path, config).unwrap();
}

#[test]
fn the_last_word_about_the_iommu_counts() {
    let intel = |line: &str| iommu(line, Cpu::Intel, true);
    assert_eq!(intel("quiet"), Iommu::Lazy);
    assert_eq!(intel("iommu=pt"), Iommu::Passthrough);
    assert_eq!(intel("iommu=pt iommu.passthrough=0"), Iommu::Lazy);
    assert_eq!(intel("iommu.passthrough=0 iommu=pt"), Iommu::Passthrough);
    assert_eq!(intel("iommu.passthrough=on"), Iommu::Passthrough);
    assert_eq!(intel("iommu.passthrough=maybe"), Iommu::Lazy);
    assert_eq!(intel("iommu=pt iommu=nopt"), Iommu::Lazy);
    assert_eq!(intel("iommu.strict=1"), Iommu::Strict);
    assert_eq!(intel("intel_iommu=off"), Iommu::Off);
    assert_eq!(
        intel("intel_iommu=off intel_iommu=on,sm_on iommu=pt"),
        Iommu::Passthrough
    );
    assert_eq!(intel("iommu=off"), Iommu::Off);
    // for init, not for the kernel
    assert_eq!(intel("quiet -- iommu=pt"), Iommu::Lazy);
    // not a parameter of its own
    assert_eq!(intel("xiommu=pt"), Iommu::Lazy);
    assert_eq!(iommu("iommu=pt", Cpu::Intel, false), Iommu::Off);
    assert_eq!(
        iommu("intel_iommu=on iommu=pt", Cpu::Intel, false),
        Iommu::Passthrough
    );
    assert_eq!(iommu("amd_iommu=on", Cpu::Amd, false), Iommu::Lazy);
    assert_eq!(iommu("amd_iommu=off iommu=pt", Cpu::Amd, false), Iommu::Off);
    assert_eq!(iommu("intel_iommu=off", Cpu::Amd, false), Iommu::Lazy);
}

#[test]
fn parameters_keep_their_quoted_blanks() {
    let all = parameters("a  b=1 \"c=x y\" d=\"p q\" e=\"\" a");
    let expected = [
        ("a", None),
        ("b", Some("1")),
        ("c", Some("x y")),
        ("d", Some("p q")),
        ("e", Some("")),
        ("a", None),
    ];
    let all: Vec<_> = all
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_deref()))
        .collect();
    assert_eq!(all, expected);
}

#[test]
fn passthrough_makes_groups_identity_and_acs_stays_on() {
    let (_dir, tree) = node(&NodeSpec::default());
    let groups = tree.names("sys/kernel/iommu_groups").unwrap().len();
    assert_eq!(
        tree.text("sys/kernel/iommu_groups/0/type").unwrap(),
        "DMA-FQ\n"
    );
    let before = tree.text("proc/sys/kernel/random/boot_id").unwrap();
    // cleared by hand, and back with the next boot
    set_control(&tree, "0000:17:00.0", 0x0011);
    reboot_with(&tree, "quiet iommu=pt");
    assert_ne!(tree.text("proc/sys/kernel/random/boot_id").unwrap(), before);
    assert_eq!(tree.names("sys/kernel/iommu_groups").unwrap().len(), groups);
    for group in tree.names("sys/kernel/iommu_groups").unwrap() {
        assert_eq!(
            tree.text(&format!("sys/kernel/iommu_groups/{group}/type"))
                .unwrap(),
            "identity\n"
        );
    }
    assert_eq!(control(&tree, "0000:17:00.0"), 0x001d);
    assert!(
        tree.text("proc/cmdline")
            .unwrap()
            .ends_with(" quiet iommu=pt\n")
    );
}

#[test]
fn without_an_iommu_only_the_firmwares_bits_are_left() {
    let (_dir, tree) = node(&NodeSpec {
        firmware_acs: 0x0014,
        ..NodeSpec::default()
    });
    assert_eq!(control(&tree, "0000:15:01.0"), 0x001d);
    reboot_with(&tree, "intel_iommu=off");
    assert_eq!(control(&tree, "0000:15:01.0"), 0x0014);
    assert!(tree.names("sys/kernel/iommu_groups").unwrap().is_empty());
    assert!(tree.names("sys/class/iommu").unwrap().is_empty());
    assert!(
        !tree
            .at("sys/bus/pci/devices/0000:18:00.0/iommu_group")
            .exists()
    );
}

#[test]
fn redirect_is_off_where_the_command_line_says_so() {
    let (_dir, tree) = node(&NodeSpec::default());
    reboot_with(&tree, "'pci=noaer,disable_acs_redir=0000:17:00.0;17:01.0'");
    assert_eq!(control(&tree, "0000:17:00.0"), 0x0011);
    assert_eq!(control(&tree, "0000:17:01.0"), 0x0011);
    assert_eq!(control(&tree, "0000:17:02.0"), 0x001d);
}

#[test]
fn a_bare_semicolon_ends_grubs_linux_line() {
    let (_dir, tree) = node(&NodeSpec::default());
    reboot_with(
        &tree,
        "pci=disable_acs_redir=0000:17:00.0;0000:17:01.0 iommu=pt",
    );
    assert_eq!(control(&tree, "0000:17:00.0"), 0x0011);
    assert_eq!(control(&tree, "0000:17:01.0"), 0x001d);
    assert!(
        tree.text("proc/cmdline")
            .unwrap()
            .ends_with("disable_acs_redir=0000:17:00.0\n")
    );
}

#[test]
fn short_config_space_hides_acs_and_is_not_made_longer() {
    let (_dir, tree) = node(&NodeSpec {
        config_len: 64,
        ..NodeSpec::default()
    });
    let boots = reboot(tree.root(), Reboot::default()).unwrap();
    assert_eq!(boots[0].kernel.as_ref().unwrap().acs_ports, 0);
    assert_eq!(
        tree.read("sys/bus/pci/devices/0000:17:00.0/config")
            .unwrap()
            .len(),
        64
    );
}
