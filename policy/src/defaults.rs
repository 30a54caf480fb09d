//! What holds where the policy says nothing.

use std::str::FromStr;

use crate::policy::{
    Acs, Devices, Gates, Gdr, Kernel, Peermem, Policy, Reboot, Trial, VERSION, Verify,
};
use crate::types::{
    AcsBit, AcsMethod, AcsScope, Bake, BusyGpu, CheckGroup, Coordinator, Duration, Fallback,
    FleetlockGroup, GdrPath, Invalid, IommuMode, Peer, PeermemPackage, Selector,
};

impl Default for Policy {
    fn default() -> Self {
        Self {
            version: VERSION,
            devices: Devices::default(),
            gdr: Gdr::default(),
            peermem: Peermem::default(),
            kernel: Kernel::default(),
            acs: Acs::default(),
            trial: Trial::default(),
            reboot: Reboot::default(),
            verify: Verify::default(),
        }
    }
}

/// NVIDIA's 3D and VGA controllers; NVIDIA's (Mellanox) InfiniBand and Ethernet controllers.
impl Default for Devices {
    fn default() -> Self {
        Self {
            gpu: vec![known::<Selector>("10de:*/0302"), known("10de:*/0300")],
            nic: vec![known::<Selector>("15b3:*/0200"), known("15b3:*/0207")],
        }
    }
}

impl Default for Gdr {
    fn default() -> Self {
        Self {
            path: GdrPath::Auto,
        }
    }
}

impl Default for Peermem {
    fn default() -> Self {
        Self {
            package: PeermemPackage::Auto,
            load: true,
        }
    }
}

impl Default for Kernel {
    fn default() -> Self {
        Self {
            iommu: IommuMode::Passthrough,
            set: Vec::new(),
            remove: Vec::new(),
        }
    }
}

impl Default for Acs {
    fn default() -> Self {
        Self {
            scope: AcsScope::Paths,
            clear: AcsBit::ALL.to_vec(),
            method: AcsMethod::Auto,
        }
    }
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            fallback: Fallback::Required,
            panic: 30,
            deadline: known::<Duration>("10m"),
            bake: Bake::Arm,
        }
    }
}

/// No reboot is ever asked for by a policy that does not ask for it.
impl Default for Reboot {
    fn default() -> Self {
        Self {
            coordinator: Coordinator::Logind,
            allow: false,
            max: 2,
            respect_inhibitors: true,
            delay: None,
            message: None,
            gates: Gates::default(),
            fleetlock: None,
        }
    }
}

impl Default for Gates {
    fn default() -> Self {
        Self {
            gpu: BusyGpu::Wait,
            windows: Vec::new(),
            time_zone: known("UTC"),
            stop_file: known("/etc/gdr-agent/stop"),
            stop_url: None,
            hook_limit: known::<Duration>("5m"),
        }
    }
}

impl Default for Verify {
    fn default() -> Self {
        Self {
            require: vec![
                CheckGroup::Cmdline,
                CheckGroup::Iommu,
                CheckGroup::Acs,
                CheckGroup::GdrPath,
                CheckGroup::Bar1,
            ],
            warn: vec![CheckGroup::Link, CheckGroup::NcclEnv, CheckGroup::Numa],
            bandwidth: None,
        }
    }
}

/// The group that FleetLock servers use where a client names none.
pub(crate) fn fleetlock_group() -> FleetlockGroup {
    known("default")
}

pub(crate) fn peer() -> Peer {
    known("loopback")
}

/// A value whose text stands in this file; the tests build every one of them.
#[expect(
    clippy::expect_used,
    reason = "the texts are constants of this file, all tested"
)]
fn known<T: FromStr<Err = Invalid>>(text: &str) -> T {
    text.parse().expect("a constant of this file is valid")
}
