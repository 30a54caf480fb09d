//! Real configuration spaces, against an independent decoder that agrees with lspci.

use gdr_agent::pci::ConfigBytes;
use gdr_agent::pci::acs;
use gdr_agent::pci::config::{Decoded, Found, PortType, ids};

fn hex(value: &serde_json::Value) -> u32 {
    let text = value.as_str().unwrap();
    u32::from_str_radix(text.trim_start_matches("0x"), 16).unwrap()
}

#[test]
fn every_collected_space_is_read_as_expected() {
    let Some(folder) = crate::support::corpus("pci-config") else {
        return;
    };
    let text = std::fs::read_to_string(folder.join("EXPECTED.json")).unwrap();
    let expected: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    let (mut present, mut absent, mut unknown) = (0, 0, 0);
    for (name, want) in &expected {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        assert_eq!(
            bytes.len() as u64,
            want["bytes"].as_u64().unwrap(),
            "{name}"
        );
        let config = ConfigBytes::whole(&bytes);
        let decoded = Decoded::of(&config);

        let seen = ids(&mut &config);
        let (vendor, device) = seen.id.unwrap();
        assert_eq!(u32::from(vendor), hex(&want["vendor"]), "{name}");
        assert_eq!(u32::from(device), hex(&want["device"]), "{name}");
        assert_eq!(seen.class.unwrap().0, hex(&want["cls"]), "{name}");
        let header = decoded.header.as_ref().unwrap();
        assert_eq!(
            u64::from(header.kind),
            want["header"].as_u64().unwrap(),
            "{name}"
        );
        assert_eq!(
            header.multi_function,
            want["multifunction"].as_bool().unwrap(),
            "{name}"
        );

        match (&want["acs"], &decoded.acs) {
            (serde_json::Value::Null, Found::Absent) => absent += 1,
            (serde_json::Value::String(why), Found::Unknown(_)) if why == "no-ext-space" => {
                unknown += 1;
            }
            (serde_json::Value::Object(want), Found::Present(got)) => {
                assert_eq!(u32::from(got.offset), hex(&want["off"]), "{name}");
                assert_eq!(u32::from(got.cap), hex(&want["cap"]), "{name}");
                assert_eq!(u32::from(got.ctl), hex(&want["ctl"]), "{name}");
                assert_eq!(
                    got.redirects(),
                    want["p2p_redirect"].as_bool().unwrap(),
                    "{name}"
                );
                present += 1;
            }
            (want, got) => panic!("{name}: expected {want}, got {got:?}"),
        }
        lspci_lines(name, &want["lspci"], &decoded);
    }
    println!("{present} with ACS, {absent} without, {unknown} too short to tell");
    assert!(
        present > 0 && absent > 0 && unknown > 0,
        "the collection covers every outcome"
    );
}

/// The lines of lspci's output that the collection kept.
fn lspci_lines(name: &str, lspci: &serde_json::Value, decoded: &Decoded) {
    if let Some(want) = lspci["acscap"].as_str() {
        let got = decoded.acs.present().unwrap();
        assert_eq!(acs::long_names(got.cap), want, "{name}");
        assert_eq!(
            acs::long_names(got.ctl),
            lspci["acsctl"].as_str().unwrap(),
            "{name}"
        );
    }
    if let Some(want) = lspci["pcie_type"].as_str() {
        let port = decoded.express.present().unwrap().port;
        let word = want.split(" (").next().unwrap();
        let expected = match word {
            "Endpoint" => PortType::Endpoint,
            "Legacy Endpoint" => PortType::LegacyEndpoint,
            "Root Port" => PortType::RootPort,
            "Upstream Port" => PortType::UpstreamPort,
            "Downstream Port" => PortType::DownstreamPort,
            "PCI-Express to PCI/PCI-X Bridge" => PortType::PciBridge,
            "PCI/PCI-X to PCI-Express Bridge" => PortType::ReverseBridge,
            "Root Complex Integrated Endpoint" => PortType::IntegratedEndpoint,
            "Root Complex Event Collector" => PortType::EventCollector,
            other => panic!("{name}: lspci says {other:?}"),
        };
        assert_eq!(port, expected, "{name}");
    }
}
