//! lspci on the same bytes: every capability and bit that both print must agree.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::layout::Machine;
use crate::support::{Space, corpus, have, port, sysfs};
use gdr_agent::pci::config::{Decoded, ExpressLink, Found};
use gdr_agent::pci::{Bdf, ConfigBytes, acs};

/// Writes the spaces as functions of one machine and returns what lspci prints, by address.
fn lspci(spaces: &[(Bdf, Vec<u8>)]) -> BTreeMap<Bdf, String> {
    let root = tempfile::tempdir().unwrap();
    for (bdf, config) in spaces {
        sysfs::write(root.path(), *bdf, None, config);
    }
    let output = run(root.path(), &["-vvv", "-D", "-n"]);
    let mut devices: BTreeMap<Bdf, String> = BTreeMap::new();
    let mut current = None;
    for line in output.lines() {
        if let Some(bdf) = line
            .split_whitespace()
            .next()
            .and_then(|word| word.parse().ok())
        {
            current = Some(bdf);
        }
        if let Some(bdf) = current {
            let text = devices.entry(bdf).or_default();
            text.push_str(line);
            text.push('\n');
        }
    }
    devices
}

fn run(root: &Path, arguments: &[&str]) -> String {
    let tree = root.join("sys/bus/pci");
    let output = std::process::Command::new("lspci")
        .args(["-A", "linux-sysfs", "-O"])
        .arg(format!("sysfs.path={}", tree.display()))
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The offset in `Capabilities: [148 v1] NAME`.
fn offset_of(text: &str, name: &str) -> Option<u16> {
    let line = text
        .lines()
        .find(|l| l.contains("Capabilities: [") && l.contains(name))?;
    let inner = line.split_once('[')?.1.split_once(']')?.0;
    u16::from_str_radix(inner.split(' ').next()?, 16).ok()
}

fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.trim().strip_prefix(label))
        .map(str::trim)
}

/// The word after `key` on the line that `label` starts.
fn word<'a>(text: &'a str, label: &str, key: &str) -> Option<&'a str> {
    let line = after(text, label)?;
    let rest = line.split_once(key)?.1.trim_start();
    Some(
        rest.split([' ', ','])
            .next()
            .unwrap_or(rest)
            .trim_end_matches(','),
    )
}

fn speed(code: u8) -> &'static str {
    [
        "unknown", "2.5GT/s", "5GT/s", "8GT/s", "16GT/s", "32GT/s", "64GT/s",
    ]
    .get(usize::from(code))
    .unwrap_or(&"unknown")
}

/// Compares one function and returns how many facts both sides stated.
fn compare(bdf: Bdf, config: &[u8], text: &str) -> usize {
    let decoded = Decoded::of(&ConfigBytes::whole(config));
    let mut compared = 0;
    let lspci_has_express = offset_of(text, "Express (v").is_some();
    assert_eq!(
        decoded.express.present().map(|e| e.offset),
        offset_of(text, "Express (v"),
        "{bdf}\n{text}"
    );
    // lspci looks at extended space only where there is a PCI Express capability.
    if lspci_has_express && config.len() > 256 {
        assert_eq!(
            decoded.acs.present().map(|acs| acs.offset),
            offset_of(text, "Access Control Services"),
            "{bdf}\n{text}"
        );
        assert_eq!(
            decoded.ats.present().map(|ats| ats.offset),
            offset_of(text, "Address Translation Service"),
            "{bdf}\n{text}"
        );
        assert_eq!(
            decoded.ari.present().copied(),
            offset_of(text, "Alternative Routing-ID"),
            "{bdf}\n{text}"
        );
    }
    if let Found::Present(registers) = decoded.acs {
        assert_eq!(
            after(text, "ACSCap:"),
            Some(acs::long_names(registers.cap).as_str()),
            "{bdf}"
        );
        assert_eq!(
            after(text, "ACSCtl:"),
            Some(acs::long_names(registers.ctl).as_str()),
            "{bdf}"
        );
        compared += 2;
    }
    if let Found::Present(ats) = decoded.ats {
        let on = word(text, "ATSCtl:", "Enable").unwrap();
        assert_eq!(on == "+", ats.enabled, "{bdf}");
        compared += 1;
    }
    let Found::Present(express) = decoded.express else {
        return compared;
    };
    if let Some(control) = express.control {
        let relaxed = word(text, "RlxdOrd", "");
        assert_eq!(
            relaxed.map(|sign| sign == "+"),
            Some(control.relaxed_ordering),
            "{bdf}\n{text}"
        );
        let supported = word(text, "DevCap:", "MaxPayload");
        assert_eq!(
            supported,
            Some(control.payload_supported.to_string().as_str()),
            "{bdf}"
        );
        let payload = word(text, "MaxPayload", "").map(str::to_owned);
        assert_eq!(payload, Some(control.payload.to_string()), "{bdf}\n{text}");
        let request = text
            .lines()
            .find_map(|line| line.split_once("MaxReadReq "))
            .map(|l| l.1);
        let request = request.and_then(|rest| rest.split(' ').next());
        assert_eq!(
            request,
            Some(control.read_request.to_string().as_str()),
            "{bdf}"
        );
        compared += 4;
    }
    if let (Some(link), Some(_)) = (express.link, after(text, "LnkCap:")) {
        compare_link(bdf, link, text);
        compared += 4;
    }
    compared
}

fn compare_link(bdf: Bdf, link: ExpressLink, text: &str) {
    assert_eq!(
        word(text, "LnkCap:", "Speed"),
        Some(speed(link.max_speed)),
        "{bdf}\n{text}"
    );
    assert_eq!(
        word(text, "LnkSta:", "Speed"),
        Some(speed(link.speed)),
        "{bdf}\n{text}"
    );
    let width = |label| word(text, label, "Width x").and_then(|w| w.parse::<u8>().ok());
    assert_eq!(width("LnkCap:"), Some(link.max_width), "{bdf}\n{text}");
    assert_eq!(width("LnkSta:"), Some(link.width), "{bdf}\n{text}");
}

fn compare_all(spaces: &[(Bdf, Vec<u8>)]) -> usize {
    let printed = lspci(spaces);
    spaces
        .iter()
        .map(|(bdf, config)| compare(*bdf, config, &printed[bdf]))
        .sum()
}

#[test]
fn agrees_on_a_made_up_machine() {
    if !have("lspci") {
        return;
    }
    let choices: Vec<u8> = crate::support::noise(7).take(400).collect();
    let machine = Machine::random(&choices, false);
    let spaces: Vec<(Bdf, Vec<u8>)> = machine
        .all
        .values()
        .map(|truth| (truth.bdf, machine.shown_config(truth).to_vec()))
        .collect();
    assert!(
        spaces.len() > 20,
        "the machine is too small to say anything: {}",
        spaces.len()
    );
    let compared = compare_all(&spaces);
    assert!(compared > 100, "only {compared} facts were compared");
}

#[test]
fn agrees_on_every_value_of_the_acs_words() {
    if !have("lspci") {
        return;
    }
    let spaces: Vec<(Bdf, Vec<u8>)> = (0..128_u16)
        .map(|ctl| {
            let kind = port::DOWNSTREAM;
            let space = Space::new(0x1000, 0xc030, 0x06_0400, kind)
                .bridge(0, 1, 1)
                .aer()
                .acs(!ctl & 0x7f, ctl)
                .ats(ctl & 1 == 1);
            (
                Bdf::new(0, (ctl / 32) as u8, (ctl % 32) as u8, 0),
                space.bytes(),
            )
        })
        .collect();
    assert!(compare_all(&spaces) >= 128 * 7);
}

/// Payload and request sizes, relaxed ordering, speeds and widths: every code that is not reserved.
#[test]
fn agrees_on_every_value_of_the_device_and_link_registers() {
    if !have("lspci") {
        return;
    }
    let widths = [1, 2, 4, 8, 12, 16, 32];
    let codes = (0..6_u32).flat_map(|size| (1..=6_u32).map(move |speed| (size, speed)));
    let spaces: Vec<(Bdf, Vec<u8>)> = codes
        .zip(0..)
        .map(|((size, speed), index)| {
            let (other_size, other_speed) = (5 - size, 7 - speed);
            let (width, other_width) = (widths[index % 7], widths[(index / 2 + 3) % 7]);
            let relaxed = (index as u32 % 2) << 4;
            let mut space = Space::new(0x15b3, 0x1021, 0x02_0700, port::ENDPOINT).aer();
            space.u32(0x44, 0x8020 | size);
            space.u32(0x48, other_size << 12 | size << 5 | relaxed);
            space.u32(0x4c, width << 4 | speed);
            space.u32(0x50, (other_width << 4 | other_speed) << 16);
            if index % 3 == 0 {
                space = space.ari();
            }
            let space = space.ats(index % 2 == 1);
            let bus = u8::try_from(index).unwrap();
            (Bdf::new(0, bus, 0, 0), space.bytes())
        })
        .collect();
    assert_eq!(spaces.len(), 36);
    // Payload supported and set, request, relaxed ordering; speeds and widths; ATS.
    assert_eq!(compare_all(&spaces), 36 * (4 + 4 + 1));
}

#[test]
fn agrees_on_collected_spaces() {
    let Some(folder) = corpus("pci-config") else {
        return;
    };
    if !have("lspci") {
        return;
    }
    let mut spaces = Vec::new();
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "config"))
    {
        let bytes = std::fs::read(path).unwrap();
        // With 64 bytes lspci prints "access denied" for the capabilities, and so do we.
        if bytes.len() > 64 {
            let index = u32::try_from(spaces.len()).unwrap();
            spaces.push((Bdf::new(index, 0, 0, 0), bytes));
        }
    }
    let compared = compare_all(&spaces);
    println!("{} functions, {compared} facts agree", spaces.len());
    assert!(spaces.len() > 50 && compared > 300, "{compared}");
}

/// The spaces in the output of `lspci -xxx`: 256 bytes of each function.
fn hex_dumps(text: &str) -> Vec<Vec<u8>> {
    let mut spaces = vec![Vec::new()];
    for line in text.lines() {
        let Some((offset, bytes)) = line.split_once(": ") else {
            continue;
        };
        let words: Vec<&str> = bytes.split(' ').collect();
        let hex = |text| usize::from_str_radix(text, 16).ok();
        let row: Option<Vec<u8>> = words
            .iter()
            .map(|word| u8::from_str_radix(word, 16).ok())
            .collect();
        let (Some(offset), Some(row)) = (hex(offset), row.filter(|row| row.len() == 16)) else {
            continue;
        };
        if offset == 0 {
            spaces.push(Vec::new());
        }
        let space = spaces.last_mut().unwrap();
        if space.len() == offset {
            space.extend(row);
        }
    }
    spaces.retain(|space| space.len() == 256);
    spaces
}

/// GPUs and switches of real servers, from reports that people have sent in.
#[test]
fn agrees_on_dumps_of_real_servers() {
    let Some(folder) = corpus("lspci") else {
        return;
    };
    if !have("lspci") {
        return;
    }
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with("xxx.txt"))
        .collect();
    files.sort();
    let texts = files
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap());
    let spaces: Vec<(Bdf, Vec<u8>)> = texts
        .flat_map(|text| hex_dumps(&text))
        .zip(0..)
        .map(|(space, index)| (Bdf::new(index, 0, 0, 0), space))
        .collect();
    let compared = compare_all(&spaces);
    println!("{} functions, {compared} facts agree", spaces.len());
    assert!(
        spaces.len() > 50 && compared > 300,
        "{} {compared}",
        spaces.len()
    );
}
