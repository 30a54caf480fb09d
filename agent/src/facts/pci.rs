//! PCI functions from sysfs, read no further than the question needs.
//!
//! Ids come from `uevent`, which the kernel has in memory; configuration space costs a bus
//! transaction per dword, so it is read for bridges and for the selected GPUs and NICs only, and
//! there only along the capability chains.

use crate::pci::clear::{Conditions, Lockdown};
use crate::pci::config::{self, Ids};
use crate::pci::select::{Selectors, selects};
use crate::pci::{Bar, Bdf, ConfigBytes, Link, RawFunction, ReadConfig, Recorder};
use crate::sys::pci_config::{ConfigFile, DEVICES, attribute};
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
    /// Configuration space: header and ACS.
    ports: bool,
    /// Configuration space: PCI Express control and link, ATS.
    details: bool,
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
                place: true,
                rest: true,
            },
            Depth::Topology(selectors) => {
                let device = selected(selectors);
                let near = bridge || device;
                Wanted {
                    ports: near,
                    details: near,
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
    let mut reader = Reader {
        root,
        buffer: Box::new([0; 4096]),
    };
    let mut functions = Vec::new();
    for entry in root.list(DEVICES)? {
        let Ok(bdf) = entry.name.parse::<Bdf>() else {
            continue;
        };
        functions.push(reader.function(bdf, &entry.name, entry.kind, depth));
    }
    functions.sort_by_key(|function| function.bdf);
    Ok(functions)
}

/// What the root says about writing ACS: virtual machine or not, and lockdown.
#[must_use]
pub fn conditions(root: &Root) -> Conditions {
    let lockdown = super::security::security(root).lockdown;
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
        live: root.is_live(),
    }
}

struct Reader<'r> {
    root: &'r Root,
    buffer: Box<[u8; 4096]>,
}

impl Reader<'_> {
    fn function(
        &mut self,
        bdf: Bdf,
        name: &str,
        kind: EntryKind,
        depth: &Depth<'_>,
    ) -> RawFunction {
        let mut function = RawFunction::bare(bdf);
        let listed = format!("{DEVICES}/{name}");
        if kind == EntryKind::Link {
            let target = self.root.link(&listed).ok().flatten();
            function.sysfs_path = target.as_deref().and_then(below_sys);
        }
        // The resolved directory spares the kernel a walk through the link for each file.
        let directory = match &function.sysfs_path {
            Some(path) => format!("/sys/{path}"),
            None => listed,
        };
        self.identify(&directory, &mut function);
        let wanted = depth.wanted(&function);
        if wanted.ports {
            self.config(&directory, wanted, &mut function);
        }
        if wanted.place {
            let node = self
                .text(&directory, "numa_node")
                .and_then(|text| text.parse().ok());
            function.numa_node = node;
            let group = self.link_name(&directory, "iommu_group");
            function.iommu_group = group.and_then(|name| name.parse().ok());
            let physical = self.link_name(&directory, "physfn");
            function.physfn = physical.and_then(|name| name.parse().ok());
        }
        if wanted.rest {
            function.revision = self
                .hex(&directory, "revision")
                .and_then(|r| u8::try_from(r).ok());
            function.bars = self
                .text(&directory, "resource")
                .map(|t| bars(&t))
                .unwrap_or_default();
            function.link = self.link(&directory);
        }
        function
    }

    fn text(&mut self, directory: &str, file: &str) -> Option<String> {
        let bytes = attribute(self.root, &format!("{directory}/{file}"), &mut self.buffer);
        let text = String::from_utf8_lossy(bytes.ok()??).trim().to_owned();
        Some(text)
    }

    fn hex(&mut self, directory: &str, file: &str) -> Option<u32> {
        let text = self.text(directory, file)?;
        u32::from_str_radix(text.trim_start_matches("0x"), 16).ok()
    }

    fn link_name(&self, directory: &str, file: &str) -> Option<String> {
        let target = self.root.link(&format!("{directory}/{file}")).ok()??;
        target.rsplit('/').next().map(str::to_owned)
    }

    /// Vendor, device, class, subsystem and driver: from `uevent` where there is one, else from the
    /// attribute files, else from configuration space.
    fn identify(&mut self, directory: &str, function: &mut RawFunction) {
        if let Some(text) = self.text(directory, "uevent") {
            uevent(&text, function);
        }
        let word = |value: Option<u32>| value.and_then(|value| u16::try_from(value).ok());
        if function.vendor.is_none() || function.device.is_none() {
            function.vendor = word(self.hex(directory, "vendor"));
            function.device = word(self.hex(directory, "device"));
            let vendor = word(self.hex(directory, "subsystem_vendor"));
            let device = word(self.hex(directory, "subsystem_device"));
            function.subsystem = vendor.zip(device).filter(|ids| *ids != (0, 0));
        }
        if function.class.is_none() {
            function.class = self.hex(directory, "class");
        }
        if function.driver.is_none() {
            function.driver = self.link_name(directory, "driver");
        }
        if function.vendor.is_none() || function.device.is_none() || function.class.is_none() {
            self.identify_by_config(directory, function);
        }
    }

    fn identify_by_config(&self, directory: &str, function: &mut RawFunction) {
        let Ok(file) = ConfigFile::open(self.root, directory) else {
            return;
        };
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

    fn config(&self, directory: &str, wanted: Wanted, function: &mut RawFunction) {
        let file = match ConfigFile::open(self.root, directory) {
            Ok(file) => file,
            Err(error) => {
                function.config = ConfigBytes::failed(error.to_string());
                return;
            }
        };
        let mut config = Recorder::new(|at| file.dword(at).map_err(|error| error.to_string()));
        // The answers are not looked at here: the recording keeps every dword that they took, and
        // decoding it later gives the same answers.
        let _ = config::header(&mut config);
        if wanted.details {
            let _ = config::express(&mut config);
            let _ = crate::pci::walk::extended(&mut config, None);
            let _ = config::ats(&mut config);
        } else {
            let _ = config::port_type(&mut config);
        }
        let _ = config::acs(&mut config);
        if wanted.rest {
            // Subsystem ids and interrupt line, for completeness.
            let _ = config.dword(0x2c);
        }
        function.config = config.finish();
    }

    fn link(&mut self, directory: &str) -> Link {
        let width = |text: Option<String>| text.and_then(|text| text.parse().ok());
        Link {
            current_speed: self.text(directory, "current_link_speed"),
            current_width: width(self.text(directory, "current_link_width")),
            max_speed: self.text(directory, "max_link_speed"),
            max_width: width(self.text(directory, "max_link_width")),
        }
    }
}

/// Where a link in `/sys/bus/pci/devices` leads, relative to `/sys`; `None` when that is outside.
fn below_sys(target: &str) -> Option<String> {
    let path = match target.strip_prefix("/sys/") {
        Some(rest) => rest.to_owned(),
        None if target.starts_with('/') => return None,
        None => format!("bus/pci/devices/{target}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
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
    fn links_are_resolved_below_sys_only() {
        let path = "devices/pci0000:00/0000:00:01.0";
        assert_eq!(
            below_sys(&format!("../../../{path}")).as_deref(),
            Some(path)
        );
        assert_eq!(below_sys(&format!("/sys/{path}")).as_deref(), Some(path));
        assert_eq!(below_sys("../../../../etc"), None);
        assert_eq!(below_sys("/etc"), None);
    }

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
