//! `Module.symvers`: what the modules of a build export, and with which version
//! (Linux Documentation/kbuild/modules.rst).

use schemars::JsonSchema;
use serde::Serialize;

/// One line of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Exported {
    /// The symbol's version, 0 where the kernel has none.
    pub crc: u32,
    /// The exporting module's path in the build, `vmlinux` for the kernel itself.
    pub module: String,
}

/// The line for `symbol`: `0xCRC TAB SYMBOL TAB MODULE TAB EXPORT...`. The file has tens of thousands of
/// lines, so it is searched rather than parsed.
#[must_use]
pub fn find_export(text: &[u8], symbol: &str) -> Option<Exported> {
    let needle = format!("\t{symbol}\t");
    memchr::memmem::find_iter(text, needle.as_bytes()).find_map(|at| {
        let (before, after) = text.split_at_checked(at)?;
        let start = memchr::memrchr(b'\n', before).map_or(0, |nl| nl + 1);
        let crc = std::str::from_utf8(before.get(start..)?).ok()?;
        let crc = u32::from_str_radix(crc.strip_prefix("0x")?, 16).ok()?;
        let rest = after.get(needle.len()..)?;
        let end = memchr::memchr2(b'\t', b'\n', rest).unwrap_or(rest.len());
        let module = String::from_utf8_lossy(rest.get(..end)?).into_owned();
        Some(Exported { crc, module })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_exactly_that_symbol() {
        let text = b"0x00000001\tib_register_peer_memory_client_v2\tx\tEXPORT_SYMBOL\n\
            0xdeadbeef\tib_register_peer_memory_client\tdrivers/infiniband/core/ib_core\tEXPORT_SYMBOL\t\n\
            broken\tother\tx\n";
        assert_eq!(
            find_export(text, "ib_register_peer_memory_client"),
            Some(Exported {
                crc: 0xdead_beef,
                module: "drivers/infiniband/core/ib_core".into()
            })
        );
        assert_eq!(find_export(text, "other"), None);
        assert_eq!(find_export(text, "register"), None);
        assert_eq!(find_export(b"", "x"), None);
    }
}
