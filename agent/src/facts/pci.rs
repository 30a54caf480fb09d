//! PCI functions from sysfs, read no further than the question needs.
//!
//! Ids come from `uevent`, which the kernel has in memory; configuration space costs a bus
//! transaction per dword, so it is read for bridges and for the selected GPUs and NICs only, and
//! there only along the capability chains.

use crate::pci::clear::{Conditions, Lockdown};
use crate::pci::config::{self, Ids};
use crate::pci::select::{Selectors, selects};
use crate::pci::{Bar, Bdf, ConfigBytes, Link, RawFunction, Recorder, walk};
use crate::sys::pci_config::DEVICES;
use crate::sys::pci_dir::{FunctionDir, FunctionList};
use crate::sys::{EntryKind, Root, SysError};

/// How much is read.
#[derive(Debug, Clone, Copy)]
pub enum Depth<'a> {
    /// Everything about every function.
    Everything,
    /// What paths, ports and their links are made from.
    Topology(Selectors<'a>),
    /// What a decision about ACS needs; with `endpoints` the ACS of all functions.
    Acs {
        /// GPUs and NICs.
        selectors: Selectors<'a>,
        /// Endpoints' own ACS is wanted too.
        endpoints: bool,
    },
}

/// What is read about one function, from what it is.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    /// Configuration space: header and ACS; subsystem ids, as part of a port's identity.
    ports: bool,
    /// Configuration space: PCI Express control and link.
    details: bool,
    /// Configuration space: ATS, which tells hosts of virtual machines.
    translation: bool,
    /// NUMA node, IOMMU group, physical function.
    place: bool,
    /// Revision, BARs, link as the kernel reports it.
    rest: bool,
}

impl Depth<'_> {
    fn wanted(&self, function: &RawFunction) -> Wanted {
        let bridge = matches!(function.class16(), None | Some(0x0604 | 0x0609));
        let selected = |selectors: &Selectors<'_>| {
            selects(selectors.gpu, function) || selects(selectors.nic, function)
        };
        match self {
            Depth::Everything => Wanted {
                ports: true,
                details: true,
                translation: true,
                place: true,
                rest: true,
            },
            Depth::Topology(selectors) => {
                let device = selected(selectors);
                let near = bridge || device;
                Wanted {
                    ports: near,
                    details: near,
                    translation: near,
                    place: device,
                    rest: device,
                }
            }
            Depth::Acs {
                selectors,
                endpoints,
            } => {
                let device = selected(selectors);
                let ports = bridge || device || *endpoints;
                Wanted {
                    ports,
                    details: false,
                    translation: selects(selectors.nic, function),
                    place: device,
                    rest: false,
                }
            }
        }
    }
}

/// Reads the functions below a root, in order of addresses. What one function does not show is
/// missing in its entry; the list fails only as a whole. No directory means no PCI: an empty list.
///
/// # Errors
/// The directory cannot be listed.
pub fn functions(root: &Root, depth: &Depth<'_>) -> Result<Vec<RawFunction>, SysError> {
    let Some(list) = FunctionList::open(root)? else {
        return Ok(Vec::new());
    };
    let mut buffer = Box::new([0; 4096]);
    let mut functions = Vec::new();
    for entry in root.list(DEVICES)? {
        let Ok(bdf) = entry.name.parse::<Bdf>() else {
            continue;
        };
        let mut function = RawFunction::bare(bdf);
        if entry.kind == EntryKind::Link {
            function.sysfs_path = list.resolve(&entry.name);
        }
        match list.function(&entry.name, function.sysfs_path.as_deref()) {
            Ok(dir) => Reader {
                dir,
                buffer: &mut buffer,
            }
            .read(&mut function, depth),
            Err(error) => function.config = ConfigBytes::failed(error.to_string()),
        }
        functions.push(function);
    }
    functions.sort_by_key(|function| function.bdf);
    Ok(functions)
}

/// What the root says about writing ACS: virtual machine or not, and lockdown.
#[must_use]
pub fn conditions(root: &Root) -> Conditions {
    let lockdown = super::security::lockdown(root);
    Conditions {
        in_vm: super::security::virtualisation(root)
            .get()
            .map(Option::is_some),
        lockdown: match (lockdown.get().map(String::as_str), lockdown.is_unknown()) {
            (Some("integrity"), _) => Lockdown::Integrity,
            (Some("confidentiality"), _) => Lockdown::Confidentiality,
            // A kernel without the lockdown module forbids nothing.
            (Some("none"), _) | (None, false) => Lockdown::None,
            _ => Lockdown::Unknown,
        },
        iommu: match root.stat("/sys/class/iommu") {
            Ok(Some(_)) => root
                .list("/sys/class/iommu")
                .ok()
                .map(|units| !units.is_empty()),
            // Without the directory, neither a kernel without IOMMU support nor a copy that leaves it out.
            Ok(None) | Err(_) => None,
        },
        live: root.is_of_running(),
    }
}

struct Reader<'b> {
    dir: FunctionDir<'b>,
    buffer: &'b mut [u8; 4096],
}

impl Reader<'_> {
    fn read(&mut self, function: &mut RawFunction, depth: &Depth<'_>) {
        self.identify(function);
        let wanted = depth.wanted(function);
        if wanted.ports && function.subsystem.is_none() {
            let vendor = word(self.hex("subsystem_vendor"));
            let device = word(self.hex("subsystem_device"));
            function.subsystem = vendor.zip(device).filter(|ids| *ids != (0, 0));
        }
        if wanted.ports {
            let display = function.class.is_some_and(|class| class >> 16 == 0x03);
            function.config = self.config(wanted, wanted.rest && display);
        }
        if wanted.place {
            function.numa_node = self.text("numa_node").and_then(|text| text.parse().ok());
            function.iommu_group = self
                .dir
                .link("iommu_group")
                .and_then(|name| name.parse().ok());
            function.physfn = self.dir.link("physfn").and_then(|name| name.parse().ok());
        }
        if wanted.rest {
            function.revision = self
                .hex("revision")
                .and_then(|number| u8::try_from(number).ok());
            function.bars = self.text("resource").map(bars).unwrap_or_default();
        }
        // The kernel says a link's state by reading the same registers again, so it is asked only where
        // they were not read: by an unprivileged reader, for one.
        if wanted.rest || (wanted.details && !has_link(&function.config)) {
            function.link = self.link();
        }
    }

    fn text(&mut self, file: &str) -> Option<&str> {
        let bytes = self.dir.attribute(file, self.buffer)?;
        std::str::from_utf8(bytes).ok().map(str::trim)
    }

    fn hex(&mut self, file: &str) -> Option<u32> {
        u32::from_str_radix(self.text(file)?.trim_start_matches("0x"), 16).ok()
    }

    /// Vendor, device, class and driver: from `uevent` where there is one, else from the attribute
    /// files, else from configuration space.
    fn identify(&mut self, function: &mut RawFunction) {
        if let Some(text) = self.text("uevent") {
            uevent(text, function);
        }
        if function.vendor.is_none() || function.device.is_none() {
            function.vendor = word(self.hex("vendor"));
            function.device = word(self.hex("device"));
        }
        if function.class.is_none() {
            function.class = self.hex("class");
        }
        if function.driver.is_none() {
            function.driver = self.dir.link("driver");
        }
        if function.vendor.is_none() || function.device.is_none() || function.class.is_none() {
            self.identify_by_config(function);
        }
    }

    fn identify_by_config(&self, function: &mut RawFunction) {
        let Ok(file) = self.dir.config() else { return };
        let mut config = Recorder::new(|at| file.dword(at).map_err(|error| error.to_string()));
        let Ids {
            id,
            class,
            subsystem,
        } = config::ids(&mut config);
        function.vendor = function.vendor.or(id.map(|(vendor, _)| vendor));
        function.device = function.device.or(id.map(|(_, device)| device));
        function.class = function.class.or(class.map(|(class, _)| class));
        function.subsystem = function.subsystem.or(subsystem);
    }

    fn config(&self, wanted: Wanted, gpu: bool) -> ConfigBytes {
        let file = match self.dir.config() {
            Ok(file) => file,
            Err(error) => return ConfigBytes::failed(error.to_string()),
        };
        let mut config = Recorder::new(|at| file.dword(at).map_err(|error| error.to_string()));
        // The answers are not looked at here: the recording keeps every dword that they took, and
        // decoding it later gives the same answers.
        let _ = config::header(&mut config);
        if wanted.details {
            let _ = config::express(&mut config);
            let _ = walk::extended(&mut config, None);
        } else {
            let _ = config::port_type(&mut config);
        }
        if wanted.translation {
            let _ = config::ats(&mut config);
        }
        let _ = config::acs(&mut config);
        if gpu {
            let _ = config::resizable(&mut config);
        }
        config.finish()
    }

    fn link(&mut self) -> Link {
        Link {
            current_speed: self.text("current_link_speed").map(str::to_owned),
            current_width: self
                .text("current_link_width")
                .and_then(|text| text.parse().ok()),
            max_speed: self.text("max_link_speed").map(str::to_owned),
            max_width: self
                .text("max_link_width")
                .and_then(|text| text.parse().ok()),
        }
    }
}

fn has_link(mut config: &ConfigBytes) -> bool {
    let express = config::express(&mut config).ok().flatten();
    express.is_some_and(|express| express.link.is_some())
}

fn word(value: Option<u32>) -> Option<u16> {
    value.and_then(|value| u16::try_from(value).ok())
}

/// `PCI_CLASS=30200`, `PCI_ID=10DE:2330`, `PCI_SUBSYS_ID=10DE:16C1`, `DRIVER=nvidia`.
fn uevent(text: &str, function: &mut RawFunction) {
    let pair = |value: &str| {
        let (a, b) = value.split_once(':')?;
        Some((
            u16::from_str_radix(a, 16).ok()?,
            u16::from_str_radix(b, 16).ok()?,
        ))
    };
    for line in text.lines() {
        match line.split_once('=') {
            Some(("PCI_CLASS", value)) => function.class = u32::from_str_radix(value, 16).ok(),
            Some(("PCI_ID", value)) => {
                let ids = pair(value);
                function.vendor = ids.map(|(vendor, _)| vendor);
                function.device = ids.map(|(_, device)| device);
            }
            Some(("PCI_SUBSYS_ID", value)) => {
                function.subsystem = pair(value).filter(|ids| *ids != (0, 0));
            }
            Some(("DRIVER", value)) => function.driver = Some(value.to_owned()),
            _ => {}
        }
    }
}

fn bars(text: &str) -> Vec<Bar> {
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let line = |(index, line): (usize, &str)| {
        let mut words = line.split_whitespace().map(number);
        let (start, end, flags) = (words.next()??, words.next()??, words.next()??);
        let assigned = start != 0 || end != 0;
        Some(Bar {
            index: u8::try_from(index).ok()?,
            start,
            end,
            flags,
        })
        .filter(|_| assigned)
    };
    text.lines().enumerate().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uevent_names_everything_that_the_kernel_has_in_memory() {
        let mut function = RawFunction::bare("0000:17:00.0".parse().unwrap());
        let text = "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2330\nPCI_SUBSYS_ID=10DE:16C1\n\
                    PCI_SLOT_NAME=0000:17:00.0\nMODALIAS=pci:v000010DEd00002330\n";
        uevent(text, &mut function);
        assert_eq!(
            (function.vendor, function.device),
            (Some(0x10de), Some(0x2330))
        );
        assert_eq!(
            (function.class, function.class16()),
            (Some(0x03_0200), Some(0x0302))
        );
        assert_eq!(function.subsystem, Some((0x10de, 0x16c1)));
        assert_eq!(function.driver.as_deref(), Some("nvidia"));
        uevent("PCI_ID=zz\nPCI_CLASS=\nnonsense", &mut function);
        assert_eq!((function.vendor, function.class), (None, None));
    }

    #[test]
    fn unassigned_regions_are_left_out() {
        let text = "0x00000000f3000000 0x00000000f3ffffff 0x0000000000040200\n\
                    0x0000000000000000 0x0000000000000000 0x0000000000000000\n\
                    0x0000020000000000 0x0000021fffffffff 0x000000000014220c\nbroken\n";
        let bars = bars(text);
        assert_eq!(bars.iter().map(|bar| bar.index).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(bars[1].size(), 128 << 30);
    }
}
