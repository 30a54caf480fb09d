//! Made-up configuration space, machines and sysfs trees for the PCI tests.

pub mod layout;
pub mod sysfs;

use gdr_agent::pci::{Bdf, ConfigBytes, RawFunction};

/// Codes of the PCI Express device/port type field.
pub mod port {
    pub const ENDPOINT: u16 = 0;
    pub const ROOT: u16 = 4;
    pub const UPSTREAM: u16 = 5;
    pub const DOWNSTREAM: u16 = 6;
}

/// 4096 bytes of configuration space, filled in piece by piece.
#[derive(Clone)]
pub struct Space {
    bytes: Vec<u8>,
    next_extended: u16,
    last_extended: Option<u16>,
}

impl Space {
    /// A function with a PCI Express capability at 0x40 and nothing in extended space.
    pub fn new(vendor: u16, device: u16, class: u32, port: u16) -> Self {
        let mut space = Self {
            bytes: vec![0; 4096],
            next_extended: 0x100,
            last_extended: None,
        };
        space.u32(0x00, u32::from(device) << 16 | u32::from(vendor));
        space.u32(0x04, 0x0010_0006);
        space.u32(0x08, class << 8 | 0xa1);
        space.u32(0x34, 0x40);
        space.u32(
            0x40,
            (0x0002 | u32::from(port) << 4) << 16 | 0x0010 | 0x50 << 8,
        );
        space.u32(0x44, 0x0000_8022);
        space.u32(0x48, 0x0000_2930);
        space.u32(0x4c, 0x0041_3105);
        space.u32(0x50, 0x1105_0000);
        // A power management capability after it, so that the chain has a second link.
        space.u32(0x50, 0x1105_0000);
        space.bytes[0x41] = 0x80;
        space.u32(0x80, 0x0003_0001);
        space
    }

    pub fn u32(&mut self, offset: usize, value: u32) {
        self.bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Makes it a bridge.
    pub fn bridge(mut self, primary: u8, secondary: u8, subordinate: u8) -> Self {
        self.bytes[0x0e] |= 1;
        self.bytes[0x18..0x1b].copy_from_slice(&[primary, secondary, subordinate]);
        self
    }

    pub fn multi_function(mut self) -> Self {
        self.bytes[0x0e] |= 0x80;
        self
    }

    /// Appends an extended capability of `length` bytes and returns its offset.
    fn extended(&mut self, id: u16, length: u16) -> usize {
        let at = self.next_extended;
        self.u32(usize::from(at), 0x0001_0000 | u32::from(id));
        if let Some(last) = self.last_extended {
            let header = usize::from(last);
            let old = u32::from_le_bytes(self.bytes[header..header + 4].try_into().unwrap());
            self.u32(header, old & 0x000f_ffff | u32::from(at) << 20);
        }
        self.last_extended = Some(at);
        self.next_extended = at + length;
        usize::from(at)
    }

    /// An error reporting capability, as most devices have one first.
    pub fn aer(mut self) -> Self {
        self.extended(0x0001, 0x48);
        self
    }

    pub fn acs(mut self, cap: u16, ctl: u16) -> Self {
        let at = self.extended(0x000d, 0x10);
        self.u32(at + 4, u32::from(ctl) << 16 | u32::from(cap));
        self
    }

    pub fn ats(mut self, enabled: bool) -> Self {
        let at = self.extended(0x000f, 0x08);
        self.u32(at + 4, if enabled { 0x8000_0020 } else { 0x0000_0020 });
        self
    }

    pub fn ari(mut self) -> Self {
        self.extended(0x000e, 0x08);
        self
    }

    pub fn bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// A function as it would be read, with the ids that its configuration space says.
pub fn raw(bdf: Bdf, path: Option<String>, config: &[u8]) -> RawFunction {
    let mut function = RawFunction::bare(bdf);
    function.sysfs_path = path;
    function.vendor = Some(u16::from_le_bytes([config[0], config[1]]));
    function.device = Some(u16::from_le_bytes([config[2], config[3]]));
    function.class = Some(u32::from_le_bytes([config[9], config[10], config[11], 0]));
    function.revision = Some(config[8]);
    function.config = ConfigBytes::whole(config);
    function
}

/// The folder of collected real inputs, from `GDR_CORPUS`; says so when it is not set.
pub fn corpus(sub: &str) -> Option<std::path::PathBuf> {
    match std::env::var_os("GDR_CORPUS") {
        Some(path) => Some(std::path::PathBuf::from(path).join(sub)),
        None => {
            assert!(std::env::var_os("CI").is_none(), "GDR_CORPUS is not set");
            println!("SKIPPED: GDR_CORPUS is not set, the collected {sub} inputs are not tested");
            None
        }
    }
}

/// True if a program is installed; says so when it is not.
pub fn have(program: &str) -> bool {
    let found = std::process::Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        assert!(
            std::env::var_os("CI").is_none(),
            "{program} is not installed (package pciutils)"
        );
        println!("SKIPPED: {program} is not installed (package pciutils)");
    }
    found
}

/// Bytes that look random and are the same every time (xorshift).
pub fn noise(seed: u32) -> impl Iterator<Item = u8> {
    let mut state = u64::from(seed) + 0x9e37_79b9_7f4a_7c15;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as u8
    })
    .skip(20)
}
