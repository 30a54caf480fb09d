//! What a kernel command line means to the kernel, for the parameters that the sample node obeys.

use super::spec::Cpu;

/// The parameters in order, cut as `next_arg` in lib/cmdline.c does: blanks part them, double quotes
/// hold blanks together and go away.
#[must_use]
pub fn parameters(cmdline: &str) -> Vec<(String, Option<String>)> {
    let mut all = Vec::new();
    let mut rest = cmdline.trim_start();
    while !rest.is_empty() {
        let mut quoted = false;
        let end = rest
            .find(|c: char| {
                quoted ^= c == '"';
                c.is_whitespace() && !quoted
            })
            .unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after.trim_start();
        // everything after a lone `--` is for init
        if word == "--" {
            break;
        }
        let word = word
            .strip_prefix('"')
            .and_then(|word| word.strip_suffix('"'))
            .unwrap_or(word);
        all.push(match word.split_once('=') {
            Some((name, value)) => {
                let value = value.strip_prefix('"').unwrap_or(value);
                (
                    name.to_owned(),
                    Some(value.strip_suffix('"').unwrap_or(value).to_owned()),
                )
            }
            None => (word.to_owned(), None),
        });
    }
    all
}

/// What the IOMMU does with DMA of a device that nobody has taken for a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iommu {
    /// There is none, or it is switched off: no groups.
    Off,
    /// `identity`: addresses go through as they are.
    Passthrough,
    /// `DMA-FQ`: translated, unmapping lazily.
    Lazy,
    /// `DMA`: translated, unmapping at once.
    Strict,
}

impl Iommu {
    /// What `/sys/kernel/iommu_groups/N/type` says.
    #[must_use]
    pub fn group_type(self) -> Option<&'static str> {
        match self {
            Iommu::Off => None,
            Iommu::Passthrough => Some("identity"),
            Iommu::Lazy => Some("DMA-FQ"),
            Iommu::Strict => Some("DMA"),
        }
    }
}

/// How an x86 kernel reads the command line (arch/x86/kernel/pci-dma.c `iommu_setup`,
/// drivers/iommu/iommu.c, intel/iommu.c `intel_iommu_setup`, amd/init.c `parse_amd_iommu_options`):
/// each setting overwrites the one before it. `default_on` is the kernel's own default for Intel.
#[must_use]
pub fn iommu(cmdline: &str, cpu: Cpu, default_on: bool) -> Iommu {
    let mut on = default_on || cpu == Cpu::Amd;
    let mut passthrough = false;
    let mut strict = false;
    for (name, value) in parameters(cmdline) {
        let options = value.as_deref().unwrap_or("").split(',');
        match (name.as_str(), cpu) {
            ("iommu", _) => {
                for option in options {
                    // the kernel compares only as many letters as its own word has
                    match option {
                        _ if option.starts_with("off") => on = false,
                        _ if option.starts_with("pt") => passthrough = true,
                        _ if option.starts_with("nopt") => passthrough = false,
                        _ => {}
                    }
                }
            }
            ("iommu.passthrough", _) => passthrough = truth(value.as_deref(), passthrough),
            ("iommu.strict", _) => strict = truth(value.as_deref(), strict),
            ("intel_iommu", Cpu::Intel) => {
                for option in options {
                    match option {
                        _ if option.starts_with("on") => on = true,
                        _ if option.starts_with("off") => on = false,
                        _ if option.starts_with("strict") => strict = true,
                        _ => {}
                    }
                }
            }
            ("amd_iommu", Cpu::Amd) => {
                for option in options {
                    match option {
                        _ if option.starts_with("off") => on = false,
                        _ if option.starts_with("fullflush") => strict = true,
                        // `on` is no option: AMD's is on unless told otherwise
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    match (on, passthrough, strict) {
        (false, ..) => Iommu::Off,
        (true, true, _) => Iommu::Passthrough,
        (true, false, true) => Iommu::Strict,
        (true, false, false) => Iommu::Lazy,
    }
}

/// As `kstrtobool`; what it does not understand changes nothing.
fn truth(value: Option<&str>, before: bool) -> bool {
    match value.unwrap_or("").as_bytes() {
        [b'y' | b'Y' | b't' | b'T' | b'1', ..] | [b'o' | b'O', b'n' | b'N', ..] => true,
        [b'n' | b'N' | b'f' | b'F' | b'0', ..] | [b'o' | b'O', b'f' | b'F', ..] => false,
        _ => before,
    }
}
