use gdr_agent::journal::{decode, encode};

/// Records of the journal: an error, or a record that is written as it was read.
pub fn journal(data: &[u8]) {
    whole(data);
    // a fuzzer finds no checksum
    let mut good = format!(
        "gdr-agent-journal crc32c={:08x} len={:08}\n",
        crc32c::crc32c(data),
        data.len()
    )
    .into_bytes();
    good.extend_from_slice(data);
    whole(&good);
}

fn whole(bytes: &[u8]) {
    match decode(bytes) {
        Ok(record) => assert_eq!(decode(&encode(&record).unwrap()).unwrap(), record),
        Err(error) => super::shown(&error.to_string()),
    }
}
