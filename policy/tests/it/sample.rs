//! The documented policy says what it seems to say.

use gdr_policy::{
    AcsBit, AcsMethod, AcsScope, AfterFailure, Bake, BusyGpu, CheckGroup, Coordinator, Fallback,
    GdrPath, IommuMode, PeermemPackage, Policy,
};

use crate::{SAMPLE, load};

#[test]
fn every_value_of_the_sample_arrives() {
    let loaded = load(SAMPLE).unwrap_or_else(|found| panic!("{found}"));
    assert!(loaded.warnings.is_empty(), "{}", loaded.warnings);
    let p = loaded.policy;
    let texts = |list: &[gdr_policy::KernelArg]| -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    };
    assert_eq!(p.version, 1);
    assert!(p.devices.gpu[0].matches(0x10de, 0x2330, 0x0302));
    assert!(p.devices.gpu[1].matches(0x10de, 0x2330, 0x0300));
    assert!(p.devices.nic[1].matches(0x15b3, 0x1021, 0x0207));
    assert_eq!(p.gdr.path, GdrPath::Auto);
    assert_eq!(p.peermem.package, PeermemPackage::Auto);
    assert!(p.peermem.load);
    assert_eq!(p.kernel.iommu, IommuMode::Passthrough);
    assert_eq!(texts(&p.kernel.set), ["pci=realloc=off"]);
    assert_eq!(texts(&p.kernel.remove), ["pcie_acs_override"]);
    assert_eq!(p.acs.scope, AcsScope::Paths);
    assert_eq!(p.acs.clear, [AcsBit::Rr, AcsBit::Cr, AcsBit::Ec]);
    assert_eq!(p.acs.method, AcsMethod::Auto);
    assert_eq!(p.trial.fallback, Fallback::Required);
    assert_eq!(p.trial.panic, 30);
    assert_eq!(p.trial.deadline.as_secs(), 600);
    assert_eq!(p.trial.bake, Bake::Arm);
    assert_eq!(p.reboot.coordinator, Coordinator::Logind);
    assert!(p.reboot.allow && p.reboot.respect_inhibitors);
    assert_eq!(p.reboot.max, 2);
    let fleetlock = p.reboot.fleetlock.unwrap();
    assert_eq!(fleetlock.url.as_str(), "http://fleetlock.example:9090/");
    assert_eq!(fleetlock.group.as_str(), "gpu");
    assert_eq!(
        (fleetlock.ca, fleetlock.failed),
        (None, AfterFailure::Release)
    );
    let gates = p.reboot.gates;
    assert_eq!((gates.gpu, gates.windows.len()), (BusyGpu::Wait, 0));
    assert_eq!(gates.time_zone.as_str(), "UTC");
    assert_eq!(gates.stop_file.as_str(), "/etc/gdr-agent/stop");
    assert_eq!((gates.stop_url, gates.hook_limit.as_secs()), (None, 300));
    use CheckGroup::{Acs, Bar1, Cmdline, GdrPath as Path, Iommu, Link, NcclEnv, Numa};
    assert_eq!(p.verify.require, [Cmdline, Iommu, Acs, Path, Bar1]);
    assert_eq!(p.verify.warn, [Link, NcclEnv, Numa]);
    let bandwidth = p.verify.bandwidth.unwrap();
    assert!(bandwidth.peer.is_loopback());
    assert_eq!(bandwidth.min_gbps, 380.0);
}

#[test]
fn version_alone_is_the_default_policy_and_never_reboots() {
    let loaded = load("version = 1").unwrap();
    assert_eq!(loaded.policy, Policy::default());
    assert!(loaded.warnings.is_empty());
    let Policy {
        kernel,
        reboot,
        verify,
        ..
    } = loaded.policy;
    assert!(!reboot.allow);
    assert!(reboot.fleetlock.is_none() && verify.bandwidth.is_none());
    assert!(kernel.set.is_empty() && kernel.remove.is_empty());
}

/// The sample's values are the defaults, but for what a bare policy must not do by itself.
#[test]
fn the_sample_differs_from_the_default_only_where_it_says_so() {
    let mut sample = load(SAMPLE).unwrap().policy;
    sample.kernel.set.clear();
    sample.kernel.remove.clear();
    sample.reboot.allow = false;
    sample.reboot.fleetlock = None;
    sample.verify.bandwidth = None;
    assert_eq!(sample, Policy::default());
}
