//! Which functions are GPUs and which are NICs.
//!
//! The policy's selectors decide; this module only applies them and leaves out virtual functions
//! whose physical function is selected too: they share its place in the tree, and one line per
//! adapter is what people want to read.

use std::collections::HashSet;

use super::tree::{NodeId, Tree};
use super::{Bdf, RawFunction};

/// Says of a vendor id, a device id and a class (base class and subclass) whether a selector matches.
pub type Matches<'a> = &'a dyn Fn(u16, u16, u16) -> bool;

/// The two questions that a policy's `[devices]` table answers.
#[derive(Clone, Copy)]
pub struct Selectors<'a> {
    /// Is it a GPU?
    pub gpu: Matches<'a>,
    /// Is it a NIC?
    pub nic: Matches<'a>,
}

impl std::fmt::Debug for Selectors<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Selectors").finish_non_exhaustive()
    }
}

/// The functions that were selected, each list in order of addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selected {
    /// GPUs.
    pub gpus: Vec<NodeId>,
    /// NICs.
    pub nics: Vec<NodeId>,
    /// Virtual functions that a selector matches but that their physical function stands for.
    pub virtual_functions: Vec<(Bdf, Bdf)>,
}

/// True if the selector matches; a function whose ids were not read matches nothing.
#[must_use]
pub fn selects(matches: Matches<'_>, function: &RawFunction) -> bool {
    match (function.vendor, function.device, function.class16()) {
        (Some(vendor), Some(device), Some(class)) => matches(vendor, device, class),
        _ => false,
    }
}

/// Applies the selectors to a tree. A function that both match is a GPU.
#[must_use]
pub fn select(tree: &Tree<'_>, selectors: Selectors<'_>) -> Selected {
    let matching = |matches: Matches<'_>| -> Vec<(NodeId, &RawFunction)> {
        tree.nodes()
            .filter_map(|(id, node)| Some((id, node.function?)))
            .filter(|(_, function)| selects(matches, function))
            .collect()
    };
    let mut selected = Selected::default();
    let mut thin_out = |found: Vec<(NodeId, &RawFunction)>| -> Vec<NodeId> {
        let addresses: HashSet<Bdf> = found.iter().map(|(_, function)| function.bdf).collect();
        let mut kept = Vec::with_capacity(found.len());
        for (id, function) in found {
            match function
                .physfn
                .filter(|physical| addresses.contains(physical))
            {
                Some(physical) => selected.virtual_functions.push((function.bdf, physical)),
                None => kept.push(id),
            }
        }
        kept
    };
    let gpus = thin_out(matching(selectors.gpu));
    let mut nics = thin_out(matching(selectors.nic));
    let taken: HashSet<NodeId> = gpus.iter().copied().collect();
    nics.retain(|id| !taken.contains(id));
    selected.gpus = gpus;
    selected.nics = nics;
    selected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(bdf: &str, id: (u16, u16), class: u32) -> RawFunction {
        let mut function = RawFunction::bare(bdf.parse().unwrap());
        function.vendor = Some(id.0);
        function.device = Some(id.1);
        function.class = Some(class);
        function
    }

    fn names(tree: &Tree<'_>, ids: &[NodeId]) -> Vec<String> {
        ids.iter()
            .map(|id| tree.node(*id).unwrap().bdf.to_string())
            .collect()
    }

    #[test]
    fn audio_switches_and_virtual_functions_are_told_apart() {
        let mut virtual_nic = function("0000:02:00.2", (0x15b3, 0x101e), 0x02_0000);
        virtual_nic.physfn = Some("0000:02:00.0".parse().unwrap());
        let mut orphan = function("0000:09:00.2", (0x15b3, 0x101e), 0x02_0000);
        orphan.physfn = Some("0000:09:00.0".parse().unwrap());
        let functions = [
            function("0000:01:00.0", (0x10de, 0x2330), 0x03_0200),
            function("0000:01:00.1", (0x10de, 0x22ba), 0x04_0300),
            function("0000:05:00.0", (0x10de, 0x22a3), 0x06_8000),
            function("0000:02:00.0", (0x15b3, 0x1021), 0x02_0700),
            virtual_nic,
            orphan,
            // The management interface of a BlueField-3.
            function("0000:02:00.1", (0x15b3, 0xc2d5), 0x08_0100),
            RawFunction::bare("0000:08:00.0".parse().unwrap()),
        ];
        let tree = Tree::build(&functions);
        let selected = select(
            &tree,
            Selectors {
                gpu: &|vendor, _, class| vendor == 0x10de && matches!(class, 0x0300 | 0x0302),
                nic: &|vendor, _, class| vendor == 0x15b3 && matches!(class, 0x0200 | 0x0207),
            },
        );
        assert_eq!(names(&tree, &selected.gpus), ["0000:01:00.0"]);
        assert_eq!(
            names(&tree, &selected.nics),
            ["0000:02:00.0", "0000:09:00.2"]
        );
        let vf = (
            "0000:02:00.2".parse().unwrap(),
            "0000:02:00.0".parse().unwrap(),
        );
        assert_eq!(selected.virtual_functions, [vf]);
    }
}
