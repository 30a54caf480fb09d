//! ACS redirection turned off by the kernel itself: `pci=disable_acs_redir=`, which the kernel applies at
//! boot, at resume and after every reset (Linux drivers/pci/pci.c), and which lockdown does not forbid.

use super::Bdf;
use super::tree::{NodeId, Tree};

/// Whether a kernel does what the parameter says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kernel {
    /// It does.
    Right,
    /// It may write wrong values, or does not know the parameter.
    Doubtful(&'static str),
}

/// By the kernel's release, such as `6.12.117+deb13-amd64`.
///
/// The parameter came with 4.20. From 6.11 on until commit 9cf8a952d57b ("PCI: Fix Extend ACS
/// configurability", in 6.15, and in 6.12.y by 6.12.117) its mask was applied wrongly: bits were set
/// instead of cleared.
#[must_use]
pub fn kernel(release: &str) -> Kernel {
    let mut numbers = release
        .split(|c: char| !c.is_ascii_digit())
        .map(|part| part.parse::<u32>().ok());
    let mut next = || numbers.next().flatten();
    let Some((major, minor)) = next().zip(next()) else {
        return Kernel::Doubtful("the kernel's release is not known");
    };
    let patch = next().unwrap_or(0);
    match (major, minor) {
        (..=3, _) | (4, ..=19) => Kernel::Doubtful("kernels before 4.20 do not know it"),
        (4, _) | (5, _) | (6, ..=10) | (6, 15..) | (7.., _) => Kernel::Right,
        (6, 12) if patch >= 117 => Kernel::Right,
        _ => Kernel::Doubtful(
            "Linux 6.11 and later, until \"PCI: Fix Extend ACS configurability\" (6.15), writes wrong values for it",
        ),
    }
}

/// The argument for these ports; `None` without ports, or where the way to one of them is not known.
///
/// A port is named by its way from the root bus, which stays when buses are numbered anew:
/// `0000:15:01.0/00.0/02.0` (Documentation/admin-guide/kernel-parameters.txt, `pci=`).
#[must_use]
pub fn argument(tree: &Tree<'_>, ports: &[Bdf]) -> Option<String> {
    let ways: Option<Vec<String>> = ports.iter().map(|port| way(tree, *port)).collect();
    let ways = ways.filter(|ways| !ways.is_empty())?;
    Some(format!("pci=disable_acs_redir={}", ways.join(";")))
}

fn way(tree: &Tree<'_>, port: Bdf) -> Option<String> {
    let mut chain: Vec<Bdf> = Vec::new();
    let mut at: Option<NodeId> = Some(tree.find(port)?);
    while let Some(id) = at {
        let node = tree.node(id)?;
        if node.gap.is_some() {
            return None;
        }
        chain.push(node.bdf);
        at = node.parent;
    }
    let (root, below) = chain.split_last()?;
    let mut way = root.to_string();
    for bdf in below.iter().rev() {
        let text = bdf.to_string();
        let (_, device) = text.rsplit_once(':')?;
        way.push('/');
        way.push_str(device);
    }
    Some(way)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_do_it_right() {
        for release in [
            "5.15.0-122-generic",
            "6.1.0-37-amd64",
            "6.10.14",
            "6.12.117+deb13-amd64",
            "6.15",
            "7.2.13",
        ] {
            assert_eq!(kernel(release), Kernel::Right, "{release}");
        }
        for release in [
            "4.18.0-553.el8",
            "6.11.0-29-generic",
            "6.12.0-55.el10",
            "6.13.2",
            "6.14.1",
            "",
            "next",
        ] {
            assert!(matches!(kernel(release), Kernel::Doubtful(_)), "{release}");
        }
    }
}
