//! The bytes of a function's configuration space.

use super::layout::{Function, Window};
use super::model::Port;
use super::spec::NodeSpec;

/// Offset of the ACS capability in every port that has one.
pub const ACS_OFFSET: usize = 0x148;
/// Offset of the ACS control word.
pub const ACS_CONTROL: usize = ACS_OFFSET + 6;

const POWER_MANAGEMENT: usize = 0x40;
const SUBSYSTEM: usize = 0x50;
const EXPRESS: usize = 0x60;
const ERROR_REPORTING: usize = 0x100;
const ATS: usize = 0x160;

/// The 4096 bytes of `function`, ACS control words at what the firmware leaves, cut to what the machine
/// lets be read.
#[must_use]
pub fn config_space(function: &Function, spec: &NodeSpec) -> Vec<u8> {
    let mut space = Space(vec![0; 4096]);
    let model = &function.model;
    space.word(0x00, model.id.0);
    space.word(0x02, model.id.1);
    // memory decoding, bus mastering, interrupts through messages
    space.word(0x04, 0x0406);
    // there is a list of capabilities
    space.word(0x06, 0x0010);
    space.dword(0x08, u32::from(model.revision) | model.class << 8);
    space.byte(0x0c, 0x10);
    space.byte(0x0e, u8::from(model.port.is_bridge()));
    space.byte(0x34, POWER_MANAGEMENT as u8);
    match function.buses {
        Some(buses) => bridge_header(&mut space, function, buses),
        None => device_header(&mut space, function),
    }
    power_management(&mut space);
    express(&mut space, function);
    extended(&mut space, function, spec);
    space.0.truncate(spec.config_len);
    space.0
}

fn device_header(space: &mut Space, function: &Function) {
    for region in &function.regions {
        let at = 0x10 + 4 * region.bar.index;
        // bit 3 prefetchable, bits 2:1 = 2 for 64 bits
        let flags = if region.bar.prefetchable { 0x0c } else { 0x00 };
        space.dword(at, region.start as u32 | flags);
        if region.bar.prefetchable {
            space.dword(at + 4, (region.start >> 32) as u32);
        }
    }
    space.word(0x2c, function.model.subsystem.0);
    space.word(0x2e, function.model.subsystem.1);
}

fn bridge_header(space: &mut Space, function: &Function, buses: [u8; 3]) {
    for (at, bus) in (0x18..).zip(buses) {
        space.byte(at, bus);
    }
    // no port space below: base above limit
    space.byte(0x1c, 0xf0);
    let (base, limit) = window_words(function.memory);
    space.word(0x20, base);
    space.word(0x22, limit);
    // low bit: 64-bit addresses
    let (base, limit) = window_words(function.prefetch);
    space.word(0x24, base | 1);
    space.word(0x26, limit | 1);
    if let Some((first, last)) = function.prefetch {
        space.dword(0x28, (first >> 32) as u32);
        space.dword(0x2c, (last >> 32) as u32);
    }
    space.byte(POWER_MANAGEMENT + 1, SUBSYSTEM as u8);
    space.byte(SUBSYSTEM, 0x0d);
    space.word(SUBSYSTEM + 4, function.model.subsystem.0);
    space.word(SUBSYSTEM + 6, function.model.subsystem.1);
    space.byte(SUBSYSTEM + 1, EXPRESS as u8);
}

/// Base and limit registers: address bits 31:20 in register bits 15:4. Base above limit is "closed".
fn window_words(window: Window) -> (u16, u16) {
    let register = |address: u64| ((address >> 16) & 0xfff0) as u16;
    window.map_or((0xfff0, 0x0000), |(first, last)| {
        (register(first), register(last))
    })
}

fn power_management(space: &mut Space) {
    space.byte(POWER_MANAGEMENT, 0x01);
    // a bridge has its subsystem capability in between
    if space.at(POWER_MANAGEMENT + 1) == 0 {
        space.byte(POWER_MANAGEMENT + 1, EXPRESS as u8);
    }
    space.word(POWER_MANAGEMENT + 2, 0x0003);
    // no soft reset
    space.word(POWER_MANAGEMENT + 4, 0x0008);
}

fn express(space: &mut Space, function: &Function) {
    let port = function.model.port;
    space.byte(EXPRESS, 0x10);
    // version 2; the slot bit for ports that a device is plugged into
    let slot = u16::from(port.has_acs()) << 8;
    space.word(EXPRESS + 2, 2 | (port as u16) << 4 | slot);
    // payload up to 512 bytes, role-based error reporting
    space.dword(EXPRESS + 4, 0x0000_8002);
    // 256-byte payloads, 512-byte read requests, relaxed ordering
    space.word(EXPRESS + 8, 0x2930);
    if port == Port::Integrated {
        return;
    }
    let (speed, width) = function.model.link;
    let link = u32::from(speed) | u32::from(width) << 4;
    space.dword(EXPRESS + 0x0c, link);
    // downstream ports also report that the link is active
    let active = u32::from(port.has_acs()) << 13;
    space.word(EXPRESS + 0x12, (link | active) as u16);
    // supported speeds: one bit for each generation, from bit 1
    space.dword(EXPRESS + 0x2c, (1 << (speed + 1)) - 2);
    space.word(EXPRESS + 0x30, u16::from(speed));
}

fn extended(space: &mut Space, function: &Function, spec: &NodeSpec) {
    let port = function.model.port;
    if port == Port::Integrated {
        return;
    }
    let acs = port.has_acs() && spec.acs;
    let ats = if function.model.ats { ATS as u32 } else { 0 };
    let next = if acs { ACS_OFFSET as u32 } else { ats };
    // id, version, offset of the next one
    space.dword(ERROR_REPORTING, 0x0001 | 2 << 16 | next << 20);
    // uncorrectable errors that are fatal: the specification's defaults
    space.dword(ERROR_REPORTING + 0x0c, 0x0046_2030);
    if acs {
        space.dword(ACS_OFFSET, 0x000d | 1 << 16 | ats << 20);
        space.word(ACS_OFFSET + 4, spec.acs_capability);
        space.word(ACS_CONTROL, spec.firmware_acs);
    }
    if function.model.ats {
        space.dword(ATS, 0x000f | 1 << 16);
    }
}

/// Little-endian registers.
struct Space(Vec<u8>);

impl Space {
    fn at(&self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        if let Some(slot) = self.0.get_mut(at..at + bytes.len()) {
            slot.copy_from_slice(bytes);
        }
    }

    fn byte(&mut self, at: usize, value: u8) {
        self.put(at, &[value]);
    }

    fn word(&mut self, at: usize, value: u16) {
        self.put(at, &value.to_le_bytes());
    }

    fn dword(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }
}
