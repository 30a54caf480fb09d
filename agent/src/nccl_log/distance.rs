//! NCCL's distances between a GPU and a NIC, by version.

/// Names in order of the number that is printed (NCCL `graph/topo.h`, later `src/include/graph.h`, tags of each
/// version).
fn names(minor: u32, patch: u32) -> &'static [&'static str] {
    match (minor, patch) {
        (..=7, _) => &["LOC", "NVL", "PIX", "PXB", "PHB", "SYS", "NET"],
        (8..=11, _) => &["LOC", "NVL", "NVB", "PIX", "PXB", "PHB", "SYS"],
        (12, _) => &["LOC", "NVL", "NVB", "PIX", "PXB", "PXN", "PHB", "SYS"],
        (13..=25, _) => &[
            "LOC", "NVL", "NVB", "PIX", "PXB", "PXN", "PHB", "SYS", "NET", "DIS",
        ],
        (26, _) => &[
            "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "PXN", "PHB", "SYS", "NET", "DIS",
        ],
        (27, ..=3) => &[
            "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "PXN", "P2C", "PHB", "SYS", "NET", "DIS",
        ],
        _ => &[
            "LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS",
        ],
    }
}

/// The name of a distance, where the version is known.
pub(super) fn name(version: Option<(u32, u32, u32)>, distance: u32) -> Option<&'static str> {
    let (2, minor, patch) = version? else {
        return None;
    };
    names(minor, patch).get(distance as usize).copied()
}

/// The three numbers of `2.26.2+cuda12.8`.
pub(super) fn numbers(version: &str) -> Option<(u32, u32, u32)> {
    let mut parts = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse().ok());
    let major = parts.next()??;
    let minor = parts.next()??;
    Some((major, minor, parts.next().flatten().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_by_version() {
        let name = |version: &str, distance| name(numbers(version), distance);
        assert_eq!(name("2.7.8+cuda10.2", 5), Some("SYS"));
        assert_eq!(name("2.16.5+cuda11.8", 7), Some("SYS"));
        assert_eq!(name("2.26.2+cuda12.2", 8), Some("SYS"));
        assert_eq!(name("2.27.3", 7), Some("P2C"));
        assert_eq!(name("2.27.7+cuda13.0", 8), Some("PHB"));
        assert_eq!(name("2.30.3+cuda13.0", 9), Some("SYS"));
        assert_eq!(name("3.0.0", 1), None);
        assert_eq!(numbers("x"), None);
    }
}
