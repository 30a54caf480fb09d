//! Every name that NCCL reads from its environment, and from which version to which.
//!
//! `names.txt` was made from the libraries themselves: NVIDIA's packages of NCCL 2.14 to 2.32 hold each name as a string. Names of versions
//! before that are from their release notes.

use std::sync::OnceLock;

/// A name and the versions that read it, as `2.19`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub name: &'static str,
    /// The first version that is known to read it; none if it is older than what was looked at.
    pub first: Option<&'static str>,
    /// The last one; none if the newest does.
    pub last: Option<&'static str>,
}

const TABLE: &str = include_str!("names.txt");

fn table() -> &'static [Name] {
    static NAMES: OnceLock<Vec<Name>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let name = |line: &'static str| {
            let mut words = line.split_whitespace();
            let name = words.next()?;
            let mut version = || words.next().filter(|word| *word != "-");
            let first = version();
            Some(Name {
                name,
                first,
                last: version(),
            })
        };
        let mut names: Vec<Name> = lines.filter_map(name).collect();
        names.sort_by_key(|name| name.name);
        names
    })
}

/// The name, if any version reads it.
#[must_use]
pub fn lookup(name: &str) -> Option<Name> {
    let table = table();
    let at = table.binary_search_by_key(&name, |known| known.name).ok()?;
    table.get(at).copied()
}

/// Names that begin with `NCCL_` and are read by something else: network plugins, RCCL, PyTorch before 2.2, tests, build systems and containers.
const OTHERS: [&str; 21] = [
    "NCCL_FASTRAK_",
    "NCCL_GPUDIRECTTCPX_",
    "NCCL_TCPX_",
    "NCCL_UCX_",
    "NCCL_SHARP_",
    "NCCL_IBEXT_",
    "NCCL_OFI_",
    "NCCL_TESTS_",
    "NCCL_MSCCL",
    "NCCL_SHIMNET_",
    "NCCL_TUNER_CONFIG",
    "NCCL_BLOCKING_WAIT",
    "NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_DESYNC_DEBUG",
    "NCCL_VERSION",
    "NCCL_HOME",
    "NCCL_ROOT",
    "NCCL_DIR",
    "NCCL_INCLUDE_DIR",
    "NCCL_LIB",
    "NCCL_PLUGIN_",
];

/// Whether something other than NCCL reads it.
#[must_use]
pub(super) fn is_others(name: &str) -> bool {
    OTHERS.iter().any(|other| name.starts_with(other))
}

/// The name that was probably meant.
#[must_use]
pub fn suggestion(name: &str) -> Option<&'static str> {
    if name.len() > 64 {
        return None;
    }
    // what guides of other programs and of versions long gone say
    let gone = [
        ("NCCL_IB_GDR_DISABLE", "NCCL_NET_GDR_LEVEL"),
        ("NCCL_GDR_DISABLE", "NCCL_NET_GDR_LEVEL"),
        ("NCCL_IB_GDR_LEVEL", "NCCL_NET_GDR_LEVEL"),
        ("NCCL_IB_GDR_READ", "NCCL_NET_GDR_READ"),
        ("NCCL_IB_CUDA_SUPPORT", "NCCL_NET_GDR_LEVEL"),
        ("NCCL_DMABUF_DISABLE", "NCCL_DMABUF_ENABLE"),
    ];
    if let Some((_, meant)) = gone.iter().find(|(gone, _)| *gone == name) {
        return Some(meant);
    }
    let current = table().iter().filter(|known| known.last.is_none());
    let near = current.map(|known| (strsim::damerau_levenshtein(name, known.name), known.name));
    let (distance, name) = near.min()?;
    (distance <= 3).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_whole() {
        assert!(table().len() > 200);
        for name in table() {
            assert!(name.name.starts_with("NCCL_"), "{}", name.name);
            for version in [name.first, name.last].into_iter().flatten() {
                assert!(
                    version
                        .split_once('.')
                        .is_some_and(|(a, b)| a == "2" && b.parse::<u32>().is_ok()),
                    "{}",
                    name.name
                );
            }
        }
        let mut sorted: Vec<&str> = table().iter().map(|n| n.name).collect();
        sorted.dedup();
        assert_eq!(sorted.len(), table().len());
    }

    #[test]
    fn names_versions_and_what_was_meant() {
        assert_eq!(lookup("NCCL_NET_GDR_LEVEL").unwrap().last, None);
        assert_eq!(lookup("NCCL_IB_DATA_DIRECT").unwrap().first, Some("2.27"));
        assert!(lookup("NCCL_IB_GDR_DISABLE").is_none());
        assert_eq!(suggestion("NCCL_NET_GDR_LEVLE"), Some("NCCL_NET_GDR_LEVEL"));
        assert_eq!(suggestion("NCCL_IB_HCAS"), Some("NCCL_IB_HCA"));
        assert_eq!(
            suggestion("NCCL_IB_GDR_DISABLE"),
            Some("NCCL_NET_GDR_LEVEL")
        );
        assert_eq!(suggestion("NCCL_SOMETHING_ELSE_ALTOGETHER"), None);
        assert!(is_others("NCCL_FASTRAK_NUM_FLOWS") && !is_others("NCCL_IB_HCA"));
    }
}
