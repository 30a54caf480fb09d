//! The words of which the policy takes exactly one.

use super::Invalid;
use crate::escape::quote;
use crate::suggest::{did_you_mean, list};

/// An enum with one spelling per variant, the same in TOML, JSON and messages.
macro_rules! spelled {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// Every variant, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The spelling in the policy.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl $crate::types::Text for $name {}
    };
}
pub(crate) use spelled;

/// `spelled!`, with the parser that suggests the nearest word.
macro_rules! choices {
    ($(#[$meta:meta])* $name:ident { $($body:tt)+ }) => {
        spelled! { $(#[$meta])* $name { $($body)+ } }

        impl std::str::FromStr for $name {
            type Err = Invalid;
            fn from_str(text: &str) -> Result<Self, Invalid> {
                Self::ALL.iter().copied().find(|choice| choice.as_str() == text).ok_or_else(|| {
                    let known: Vec<&str> = Self::ALL.iter().map(|choice| choice.as_str()).collect();
                    not_one_of(text, &known)
                })
            }
        }
    };
}

fn not_one_of(text: &str, known: &[&str]) -> Invalid {
    let invalid = Invalid::new(format!("{} is not one of {}", quote(text), list(known)));
    match did_you_mean(text, known) {
        Some(word) => invalid.help(format!("did you mean `{word}`?")),
        None => invalid,
    }
}

choices! {
    /// How NIC drivers reach GPU memory.
    GdrPath {
        /// DMA-BUF where kernel, driver and library can do it, else nvidia-peermem.
        Auto = "auto",
        /// DMA-BUF only.
        DmaBuf = "dma-buf",
        /// The nvidia-peermem module only.
        Peermem = "peermem",
    }
}

choices! {
    /// What the IOMMU does to the DMA of trusted devices.
    IommuMode {
        /// On, with devices mapped one to one (identity groups).
        Passthrough = "passthrough",
        /// Off.
        Off = "off",
        /// As it is; nothing is changed.
        Keep = "keep",
    }
}

choices! {
    /// Which bridges may have their ACS redirect bits cleared.
    AcsScope {
        /// The bridges on paths between a GPU and a NIC.
        Paths = "paths",
        /// Every bridge above a GPU or a NIC.
        Bridges = "bridges",
        /// Every bridge of the node.
        All = "all",
        /// None; the report says what that costs.
        Keep = "keep",
    }
}

choices! {
    /// How ACS redirect bits are cleared.
    AcsMethod {
        /// Config space where it can be written, else the kernel's command line.
        Auto = "auto",
        /// Masked read-modify-write of the ACS control word, again at every boot.
        ConfigSpace = "config-space",
        /// The kernel's own `pci=` parameters, where this kernel is known to do them right.
        Cmdline = "cmdline",
    }
}

choices! {
    /// What to do where GRUB cannot fall back to the known-good entry by itself.
    Fallback {
        /// Refuse to change the command line.
        Required = "required",
        /// Go on, and say that a person may have to choose the old entry.
        BestEffort = "best-effort",
    }
}

choices! {
    /// What an image boots first.
    Bake {
        /// The first boot of the image is the trial.
        Arm = "arm",
        /// The image boots the new command line as its default, with no trial.
        Commit = "commit",
    }
}

choices! {
    /// Who is asked before a reboot.
    Coordinator {
        /// systemd-logind, over D-Bus.
        Logind = "logind",
        /// openSUSE's rebootmgr.
        Rebootmgr = "rebootmgr",
        /// A FleetLock server, over HTTP.
        Fleetlock = "fleetlock",
        /// A sentinel file, for whoever watches for it.
        Sentinel = "sentinel",
        /// Nobody.
        None = "none",
    }
}

choices! {
    /// What to do while a process computes on a GPU.
    BusyGpu {
        /// Ask for no reboot. Not knowing counts as busy.
        Wait = "wait",
        /// Ask all the same: whoever drains the node knows better.
        Ignore = "ignore",
    }
}

choices! {
    /// What becomes of the slot of a node whose trial failed, once the node is as before.
    AfterFailure {
        /// It is given back: the next node may try.
        Release = "release",
        /// It stays taken until a person runs `gdr-agent rollback` there or the node gets another
        /// policy: when as many trials failed as the group has slots, the rollout stops.
        Hold = "hold",
    }
}

choices! {
    /// A group of checks that verification runs.
    CheckGroup {
        /// The running command line has what the policy sets and lacks what it removes.
        Cmdline = "cmdline",
        /// The IOMMU groups have the type that `kernel.iommu` asks for.
        Iommu = "iommu",
        /// No bridge in `acs.scope` redirects.
        Acs = "acs",
        /// The way that `gdr.path` asks for works.
        GdrPath = "gdr-path",
        /// The GPUs' BAR1 is large enough to map their memory.
        Bar1 = "bar1",
        /// PCIe links run at their full speed and width.
        Link = "link",
        /// No NCCL variable or configuration file gets in the way.
        NcclEnv = "nccl-env",
        /// GPU and NIC of a pair share a NUMA node.
        Numa = "numa",
        /// perftest reaches `verify.bandwidth.min_gbps`.
        Bandwidth = "bandwidth",
        /// The kernel modules that the policy needs are loaded.
        Modules = "modules",
    }
}
