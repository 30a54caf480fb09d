//! The validated types by themselves.

use gdr_policy::{
    AcsBit, CheckGroup, Duration, FleetlockUrl, KernelArg, ModuleName, PackageName, Peer,
    PeermemPackage, Selector,
};

#[test]
fn selectors_match_by_every_part() {
    let selector: Selector = "10DE:2330/0302".parse().unwrap();
    assert!(selector.matches(0x10de, 0x2330, 0x0302));
    assert!(!selector.matches(0x10df, 0x2330, 0x0302));
    assert!(!selector.matches(0x10de, 0x2331, 0x0302));
    assert!(!selector.matches(0x10de, 0x2330, 0x0300));
    assert_eq!(selector.to_string(), "10de:2330/0302");
    let any: Selector = "*:*/0302".parse().unwrap();
    assert!(any.matches(0x1002, 0x74a1, 0x0302) && !any.matches(0x1002, 0x74a1, 0x0380));
    for bad in [
        "",
        "10de",
        "10de:*",
        "10de:/0302",
        "0x10de:*/0302",
        "10de:*/030200",
        "+0de:*/*",
    ] {
        assert!(bad.parse::<Selector>().is_err(), "{bad}");
    }
}

#[test]
fn kernel_arguments_split_at_the_first_equals_sign() {
    let arg: KernelArg = "pci=realloc=off".parse().unwrap();
    assert_eq!((arg.name(), arg.value()), ("pci", Some("realloc=off")));
    let flag: KernelArg = "pcie-acs-override".parse().unwrap();
    assert_eq!((flag.name(), flag.value()), ("pcie-acs-override", None));
    assert_eq!(flag.folded_name(), "pcie_acs_override");
    let empty: KernelArg = "x=".parse().unwrap();
    assert_eq!(empty.value(), Some(""));
    for good in [
        "isolcpus=managed_irq,1-3",
        "root=/dev/x",
        "a.b=c:d@e",
        "x=50%",
        "crashkernel=+1G",
    ] {
        assert!(good.parse::<KernelArg>().is_ok(), "{good}");
    }
}

#[test]
fn durations_add_up() {
    for (text, secs, shown) in [
        ("90s", 90, "1m30s"),
        ("10m", 600, "10m"),
        ("1h30m", 5400, "1h30m"),
        ("1h0m1s", 3601, "1h1s"),
        ("168h", 604_800, "168h"),
    ] {
        let duration: Duration = text.parse().unwrap();
        assert_eq!(
            (duration.as_secs(), duration.to_string().as_str()),
            (secs, shown)
        );
        assert_eq!(duration.to_string().parse::<Duration>().unwrap(), duration);
    }
    let huge = "99999999999999999999h";
    for bad in [
        "", "10", "m", "0s", "1m1h", "1s1s", "-1s", "1.5h", "1 h", "169h", "1d", huge,
    ] {
        assert!(bad.parse::<Duration>().is_err(), "{bad}");
    }
}

#[test]
fn names() {
    let module: ModuleName = "nvidia-peermem".parse().unwrap();
    assert_eq!(module.canonical(), "nvidia_peermem");
    for bad in ["", "-r", "a b", "a/b", "a.ko", &"m".repeat(56)] {
        assert!(bad.parse::<ModuleName>().is_err(), "{bad}");
    }
    for good in [
        "libstdc++6",
        "linux-modules-nvidia-550-server",
        "kmod-nvidia_x.y",
    ] {
        assert!(good.parse::<PackageName>().is_ok(), "{good}");
        assert!(matches!(good.parse(), Ok(PeermemPackage::Name(_))));
    }
    for bad in ["", "-y", ".a", "a=1", "a:amd64", "a/b", "a~b", "*"] {
        assert!(bad.parse::<PackageName>().is_err(), "{bad}");
    }
}

#[test]
fn urls_and_hosts() {
    for good in [
        "http://h",
        "https://[::1]:8443/a/b-c_d~e%20",
        "http://10.0.0.1:1/",
    ] {
        assert!(good.parse::<FleetlockUrl>().is_ok(), "{good}");
    }
    for bad in [
        "http://-h/",
        "http://h:/",
        "http://[::1/",
        "http://[x]/",
        "http://h/ ",
        "HTTP://h",
    ] {
        assert!(bad.parse::<FleetlockUrl>().is_err(), "{bad}");
    }
    for good in ["loopback", "node-7.example", "fd00::1", "::1"] {
        assert!(good.parse::<Peer>().is_ok(), "{good}");
    }
    for bad in ["", "-a", "a b", "a;b", "a/b"] {
        assert!(bad.parse::<Peer>().is_err(), "{bad}");
    }
}

/// PCI_ACS_RR, PCI_ACS_CR and PCI_ACS_EC of the kernel's pci_regs.h.
#[test]
fn acs_bits() {
    assert_eq!(
        AcsBit::ALL.iter().map(|bit| bit.mask()).collect::<Vec<_>>(),
        [0x04, 0x08, 0x20]
    );
}

#[test]
fn check_groups_have_the_documented_names() {
    let names: Vec<&str> = CheckGroup::ALL.iter().map(|group| group.as_str()).collect();
    let documented = "cmdline iommu acs gdr-path bar1 link nccl-env numa bandwidth modules";
    assert_eq!(names.join(" "), documented);
}
