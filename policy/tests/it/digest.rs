//! The digest names the policy in force and nothing else.

use gdr_policy::{Policy, load};

use crate::{SAMPLE, source};

/// Both were computed with Python's json (sorted keys, no blanks) and hashlib.
#[test]
fn known_digests() {
    let bare = crate::load("version = 1").unwrap().policy;
    assert_eq!(
        bare.digest(),
        "504b3bfbae4d878747eed83ed4b7dfcdb7a3cfac0290bc1a3026fd0d93542a08"
    );
    let sample = crate::load(SAMPLE).unwrap().policy;
    assert_eq!(
        sample.digest(),
        "089bba6159f961f28dcc00780091b4cae69fbed681fd207770496e22142e2a8a"
    );
}

#[test]
fn layout_does_not_matter() {
    let plain = crate::load(SAMPLE).unwrap().policy.digest();
    let turned = "verify.bandwidth = { min_gbps = 380, peer = 'loopback' } # last first\n\
                  version = 0x1\n\
                  [reboot]\nfleetlock.group = \"gpu\"\nallow = true\n\
                  fleetlock.url = \"http://fleetlock.example:9090/\"\n";
    let drop_in = "[kernel]\nremove = ['pcie_acs_override']\nset = ['pci=realloc=off']\n\
                   [trial]\ndeadline = '600s'\n[devices]\n\
                   gpu = ['10DE:*/0302', '10DE:*/0300']\n";
    let sources = [
        source("elsewhere.toml", turned),
        source("drop-in.toml", drop_in),
    ];
    assert_eq!(load(&sources).unwrap().policy.digest(), plain);
}

#[test]
fn each_value_matters() {
    let bare = Policy::default().digest();
    for change in [
        "kernel.iommu = \"off\"",
        "trial.panic = 31",
        "reboot.allow = true",
        "acs.clear = [\"CR\", \"RR\", \"EC\"]",
        "verify.bandwidth.min_gbps = 1",
    ] {
        let policy = crate::load(&format!("version = 1\n{change}\n"))
            .unwrap()
            .policy;
        assert_ne!(policy.digest(), bare, "{change}");
    }
}
