//! Writes functions as a `/sys/bus/pci` tree that lspci, setpci and the agent all read.

use std::path::Path;

use gdr_agent::pci::Bdf;

/// Writes one function's directory and, with `path` below `/sys`, the link to it.
pub fn write(root: &Path, bdf: Bdf, path: Option<&str>, config: &[u8]) {
    let devices = root.join("sys/bus/pci/devices");
    std::fs::create_dir_all(&devices).unwrap();
    let name = bdf.to_string();
    let dir = match path {
        Some(path) => {
            let dir = root.join("sys").join(path);
            std::fs::create_dir_all(&dir).unwrap();
            let target = Path::new("../../..").join(path);
            std::os::unix::fs::symlink(target, devices.join(&name)).unwrap();
            dir
        }
        None => devices.join(&name),
    };
    std::fs::create_dir_all(&dir).unwrap();
    let word = |at: usize| u16::from_le_bytes([config[at], config[at + 1]]);
    let class = u32::from_le_bytes([config[9], config[10], config[11], 0]);
    let put = |file: &str, text: String| std::fs::write(dir.join(file), text).unwrap();
    // The kernel always has a uevent file; copied and made-up trees often do not.
    if path.is_some() {
        let (vendor, device) = (word(0), word(2));
        put(
            "uevent",
            format!(
                "PCI_CLASS={class:X}\nPCI_ID={vendor:04X}:{device:04X}\nPCI_SLOT_NAME={name}\n"
            ),
        );
    }
    put("vendor", format!("{:#06x}\n", word(0)));
    put("device", format!("{:#06x}\n", word(2)));
    put("class", format!("{class:#08x}\n"));
    put("revision", format!("{:#04x}\n", config[8]));
    put("irq", "0\n".to_owned());
    put("numa_node", "0\n".to_owned());
    put(
        "resource",
        "0x0000000000000000 0x0000000000000000 0x0000000000000000\n".repeat(7),
    );
    std::fs::write(dir.join("config"), config).unwrap();
}
