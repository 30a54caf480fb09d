use gdr_agent::pci::ConfigBytes;
use gdr_agent::pci::config::{Decoded, acs, ats, express, header, port_type};

/// Configuration spaces: single questions have the answers of the whole, and text of a recording is read again.
pub fn pci_config(data: &[u8]) {
    let config = ConfigBytes::whole(data);
    let all = Decoded::of(&config);
    let mut reader = &config;
    assert_eq!(header(&mut reader), all.header);
    let _ = (acs(&mut reader), ats(&mut reader));
    let _ = (express(&mut reader), port_type(&mut reader));
    let json = serde_json::to_string(&config).unwrap();
    let again: ConfigBytes = serde_json::from_str(&json).unwrap();
    assert_eq!(Decoded::of(&again), all);
    if let Ok(any) = serde_json::from_slice::<ConfigBytes>(data) {
        let _ = Decoded::of(&any);
    }
}
