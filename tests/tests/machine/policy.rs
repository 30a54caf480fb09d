//! The policies that the scenarios apply.

/// A policy for the machine's stand-ins: one GPU, one NIC, and a third device that neither selector names.
///
/// `set` and `require` are lists as TOML has them.
pub(crate) fn policy(set: &str, require: &str) -> String {
    format!(
        r#"version = 1

[devices]
gpu = ["1b36:0010/0108"]
nic = ["8086:10c9/0200"]

[peermem]
package = "none"
load = false

[kernel]
iommu = "passthrough"
set = {set}

[acs]
scope = "paths"

[trial]
panic = 5

[reboot]
coordinator = "logind"

[verify]
require = {require}
warn = []
"#
    )
}

/// Everything that can be met here: there is no GPU driver.
pub(crate) const CAN_BE_MET: &str = r#"["cmdline", "iommu", "acs"]"#;

/// With the path between NIC driver and GPU driver, which cannot.
pub(crate) const CANNOT_BE_MET: &str = r#"["cmdline", "iommu", "acs", "gdr-path"]"#;

/// An argument that the initramfs cannot mount the root with.
pub(crate) const DIES: &str = r#"["rootflags=no_such_option"]"#;

/// All ports of the machine, on a path or not, and nothing that needs a reboot.
pub(crate) fn every_port() -> String {
    policy("[]", r#"["acs"]"#)
        .replace(r#"scope = "paths""#, r#"scope = "all""#)
        .replace(r#"iommu = "passthrough""#, r#"iommu = "keep""#)
}

/// GPU memory through nvidia-peermem, and nothing else.
pub(crate) fn peermem() -> String {
    policy("[]", r#"["gdr-path"]"#)
        .replace("load = false", "load = true\n\n[gdr]\npath = \"peermem\"")
        .replace(r#"scope = "paths""#, r#"scope = "keep""#)
        .replace(r#"iommu = "passthrough""#, r#"iommu = "keep""#)
}

#[test]
fn the_policies_are_valid() {
    let all = [
        policy("[]", CAN_BE_MET),
        policy(r#"["cut.mark=1"]"#, CAN_BE_MET),
        policy("[]", CANNOT_BE_MET),
        policy(DIES, CAN_BE_MET),
        every_port(),
        peermem(),
    ];
    for text in all {
        let source = gdr_policy::Source {
            name: "scenario".to_owned(),
            text: text.clone().into(),
        };
        let loaded = gdr_policy::load(&[source]).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        assert!(
            loaded.warnings.0.is_empty(),
            "{:?}\n{text}",
            loaded.warnings
        );
    }
}
