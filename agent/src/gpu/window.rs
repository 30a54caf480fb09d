//! The window into a GPU's memory: BAR1 as NVIDIA counts, which is the largest prefetchable 64-bit BAR. It is region 1 up to Ada, and
//! region 2 from Hopper on, where BAR0 has 64 bits too.

use schemars::JsonSchema;
use serde::Serialize;

use crate::pci::config::resizable;
use crate::pci::{Bar, Bdf, ConfigBytes};

/// Resource flags (`include/linux/ioport.h`).
const PREFETCH: u64 = 0x2000;
const MEM_64: u64 = 0x0010_0000;
/// The kernel found no room for it.
const UNSET: u64 = 0x2000_0000;

/// 256 MiB is what a GPU shows where no large window was placed.
pub(super) const SMALL: u64 = 256 << 20;

/// The window into a GPU's memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Window {
    /// The GPU.
    pub bdf: Bdf,
    /// The BAR, from 0; null if none is prefetchable with 64 bits.
    pub bar: Option<u8>,
    /// Its size.
    pub bytes: Option<u64>,
    /// Whether it has an address.
    pub placed: bool,
    /// The sizes that it could have, from the Resizable BAR capability and from `resourceN_resize`; empty if it cannot be
    /// resized, or neither could be read.
    pub sizes: Vec<u64>,
    /// Where those come from.
    pub sizes_from: Option<String>,
}

/// The window of the GPU at `bdf`, from the lines of its `resource`.
#[must_use]
pub fn window(bdf: Bdf, bars: &[Bar]) -> Window {
    let fits = |bar: &&Bar| bar.index < 6 && bar.flags & PREFETCH != 0 && bar.flags & MEM_64 != 0;
    let bar = bars.iter().filter(fits).max_by_key(|bar| bar.size());
    Window {
        bdf,
        bar: bar.map(|bar| bar.index),
        bytes: bar.map(Bar::size),
        placed: bar.is_some_and(|bar| bar.start != 0 && bar.flags & UNSET == 0),
        sizes: Vec::new(),
        sizes_from: None,
    }
}

impl Window {
    /// Adds the sizes that the Resizable BAR capability in its configuration space has for it.
    #[must_use]
    pub fn resizable(mut self, mut config: &ConfigBytes) -> Self {
        let bars = resizable(&mut config).ok().flatten().unwrap_or_default();
        let own = bars.into_iter().find(|bar| Some(bar.index) == self.bar);
        if let Some(bar) = own.filter(|bar| !bar.supported.is_empty()) {
            self.sizes = bar.supported;
            self.sizes_from = Some(format!(
                "/sys/bus/pci/devices/{}/config: Resizable BAR",
                self.bdf
            ));
        }
        self
    }
}

/// The sizes in `resourceN_resize`: a hexadecimal number whose bit N stands for 2^N MiB (`Documentation/ABI/testing/sysfs-bus-pci`).
#[must_use]
pub fn resizes(text: &str) -> Vec<u64> {
    let bits = u64::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap_or(0);
    (0..44)
        .filter(|bit| bits >> bit & 1 == 1)
        .map(|bit| 1 << (20 + bit))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(index: u8, start: u64, size: u64, flags: u64) -> Bar {
        Bar {
            index,
            start,
            end: start + size - 1,
            flags,
        }
    }

    #[test]
    fn ampere_hopper_and_a_window_without_a_place() {
        let bdf = Bdf::new(0, 0x18, 0, 0);
        // region 0 with 32 bits, region 1 the window, region 3 with 32 MiB
        let ampere = [
            bar(0, 0x9000_0000, 16 << 20, 0x40200),
            bar(1, 1 << 45, 64 << 30, 0x0014_220c),
            bar(3, 1 << 46, 32 << 20, 0x0014_220c),
        ];
        let found = window(bdf, &ampere);
        assert_eq!(
            (found.bar, found.bytes, found.placed),
            (Some(1), Some(64 << 30), true)
        );
        let hopper = [
            bar(0, 1 << 44, 16 << 20, 0x0014_220c),
            bar(2, 1 << 45, 128 << 30, 0x0014_220c),
            bar(4, 1 << 46, 32 << 20, 0x0014_220c),
        ];
        assert_eq!(window(bdf, &hopper).bar, Some(2));
        let unset = [
            bar(0, 1 << 44, 16 << 20, 0x0014_0200),
            bar(2, 0, 128 << 30, 0x2014_220c),
        ];
        let found = window(bdf, &unset);
        assert_eq!((found.bytes, found.placed), (Some(128 << 30), false));
        assert_eq!(window(bdf, &[]).bytes, None);
    }

    #[test]
    fn sizes_of_a_resizable_bar() {
        // 256 MiB, 512 MiB, 16 GiB
        assert_eq!(
            resizes("0x0000000000004300\n"),
            [256 << 20, 512 << 20, 16 << 30]
        );
        assert!(resizes("nonsense").is_empty());
    }
}
