use super::*;

fn put(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
}

fn port() -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    put(&mut bytes, 0x00, 0x1979_1000);
    put(&mut bytes, 0x04, 0x0010_0007);
    put(&mut bytes, 0x08, 0x0604_00b0);
    put(&mut bytes, 0x0c, 0x0081_0010);
    put(&mut bytes, 0x18, 0x0018_1716);
    put(&mut bytes, 0x34, 0x0000_0040);
    put(&mut bytes, 0x40, 0x0062_0010);
    put(&mut bytes, 0x44, 0x0000_8002);
    put(&mut bytes, 0x48, 0x0000_5030);
    put(&mut bytes, 0x4c, 0x0000_0105);
    put(&mut bytes, 0x50, 0x0084_0000);
    put(&mut bytes, 0x100, 0x0001_000d);
    put(&mut bytes, 0x104, 0x001d_007f);
    bytes
}

#[test]
fn decodes_a_downstream_port() {
    let decoded = Decoded::of(&ConfigBytes::whole(&port()));
    let buses = Some(BridgeBuses {
        secondary: 0x17,
        subordinate: 0x18,
    });
    assert_eq!(
        decoded.header,
        Ok(Header {
            kind: 1,
            multi_function: true,
            buses
        })
    );
    let Found::Present(express) = decoded.express else {
        panic!("no PCI Express")
    };
    assert_eq!(express.port, PortType::DownstreamPort);
    let control = DeviceControl {
        payload_supported: 512,
        payload: 256,
        read_request: 4096,
        relaxed_ordering: true,
    };
    assert_eq!(express.control, Some(control));
    let link = ExpressLink {
        max_speed: 5,
        max_width: 16,
        speed: 4,
        width: 8,
    };
    assert_eq!(express.link, Some(link));
    let registers = AcsRegisters {
        offset: 0x100,
        cap: 0x7f,
        ctl: 0x1d,
    };
    assert_eq!(decoded.acs, Found::Present(registers));
    assert_eq!(decoded.ats, Found::Absent);
}

#[test]
fn a_short_file_leaves_acs_unknown() {
    let decoded = Decoded::of(&ConfigBytes::whole(&port()[..256]));
    assert!(matches!(decoded.acs, Found::Unknown(_)));
    assert!(matches!(decoded.express, Found::Present(_)));
    let decoded = Decoded::of(&ConfigBytes::whole(&port()[..64]));
    assert!(matches!(decoded.express, Found::Unknown(_)));
    assert!(decoded.header.is_ok());
}

#[test]
fn a_device_that_vanished_is_unknown_throughout() {
    let decoded = Decoded::of(&ConfigBytes::whole(&[0xff; 4096]));
    assert_eq!(decoded.header, Err(Unknown::Gone));
    assert_eq!(decoded.acs, Found::Unknown(Unknown::Gone));
    assert_eq!(ids(&mut &ConfigBytes::whole(&[0xff; 64])), Ids::default());
    // Gone between the header and the registers.
    let mut bytes = port();
    put(&mut bytes, 0x104, u32::MAX);
    assert_eq!(
        Decoded::of(&ConfigBytes::whole(&bytes)).acs,
        Found::Unknown(Unknown::Gone)
    );
}

#[test]
fn identification_words() {
    let mut bytes = port();
    assert_eq!(
        ids(&mut &ConfigBytes::whole(&bytes)),
        Ids {
            id: Some((0x1000, 0x1979)),
            class: Some((0x06_0400, 0xb0)),
            subsystem: None
        }
    );
    put(&mut bytes, 0x0c, 0);
    put(&mut bytes, 0x2c, 0x16c1_10de);
    assert_eq!(
        ids(&mut &ConfigBytes::whole(&bytes)).subsystem,
        Some((0x10de, 0x16c1))
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]
    #[test]
    fn any_bytes_decode(mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..4200), list: bool) {
        // Random status words seldom announce a capability list.
        if list && bytes.len() > 16 {
            bytes[6] |= 0x10;
            bytes[14] &= 0x81;
        }
        let decoded = Decoded::of(&ConfigBytes::whole(&bytes));
        if let Found::Present(acs) = decoded.acs {
            let at = usize::from(acs.offset);
            proptest::prop_assert_eq!(u16::from_le_bytes([bytes[at], bytes[at + 1]]), 0x0d);
            proptest::prop_assert_eq!(u16::from_le_bytes([bytes[at + 6], bytes[at + 7]]), acs.ctl);
        }
        if bytes.len() <= 256 {
            proptest::prop_assert!(matches!(decoded.acs, Found::Unknown(_)));
        }
    }
}

/// A GPU's Resizable BAR capability at 0x100, its registers as section 7.8.6 of the specification lays them out.
fn resizable_at(registers: &[(u32, u32)]) -> Vec<u8> {
    let mut bytes = port();
    put(&mut bytes, 0x100, 0x0001_0015);
    for (nth, (capability, control)) in registers.iter().enumerate() {
        put(&mut bytes, 0x104 + 8 * nth, *capability);
        put(&mut bytes, 0x108 + 8 * nth, *control);
    }
    bytes
}

fn resizables(bytes: &[u8]) -> Result<Option<Vec<ResizableBar>>, Unknown> {
    resizable(&mut &ConfigBytes::whole(bytes))
}

#[test]
fn sizes_of_resizable_bars() {
    // BAR 1: 256 MiB now (8), and 64 MiB to 16 GiB supported (bits 4 + 6 to 4 + 14). One BAR.
    let bytes = resizable_at(&[(0x0007_fc00, 0x0000_0821)]);
    let expected: Vec<u64> = (26..=34).map(|power| 1 << power).collect();
    assert_eq!(
        resizables(&bytes).unwrap().unwrap(),
        [ResizableBar {
            index: 1,
            bytes: 256 << 20,
            supported: expected
        }]
    );
    // two BARs; the first 128 GiB (17) of 128 TiB at most (bit 31), the second 1 MiB with 256 TiB and 8 EiB from the
    // control register (bits 16 and 31)
    let bytes = resizable_at(&[(0x8000_0000, 0x0000_1142), (0x0000_0010, 0x8001_0004)]);
    let bars = resizables(&bytes).unwrap().unwrap();
    assert_eq!(
        (bars[0].index, bars[0].bytes, bars[0].supported.clone()),
        (2, 128 << 30, vec![128 << 40])
    );
    assert_eq!(
        (bars[1].index, bars[1].bytes, bars[1].supported.clone()),
        (4, 1 << 20, vec![1 << 20, 256 << 40, 1 << 63])
    );
}

#[test]
fn resizable_bars_that_cannot_be_told() {
    assert_eq!(resizables(&port()), Ok(None));
    // as much as an unprivileged reader sees
    assert!(resizables(&port()[..256]).is_err());
    let ends_in_it = resizable_at(&[(0x10, 0x21)])[..0x108].to_vec();
    assert!(resizables(&ends_in_it).is_err());
    for registers in [
        // no BAR, seven BARs, BAR 6, 2^44 MiB
        [(0x10, 0x01)],
        [(0x10, 0xe1)],
        [(0x10, 0x26)],
        [(0x10, 0x2c21)],
        [(u32::MAX, u32::MAX)],
    ] {
        assert!(
            resizables(&resizable_at(&registers)).is_err(),
            "{registers:x?}"
        );
    }
    // it says six, and the space ends after some of them
    let mut bytes = vec![0; 4096];
    bytes.copy_from_slice(&port());
    put(&mut bytes, 0x100, 0xff00_000d | 0x0001_0000);
    put(&mut bytes, 0xff0, 0x0001_0015);
    put(&mut bytes, 0xff4, 0x10);
    put(&mut bytes, 0xff8, 0xc1);
    assert!(resizables(&bytes).is_err());
}
