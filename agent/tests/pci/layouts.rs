//! Random machines: every path and every clearing plan against the answer found by brute force.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::layout::{Acs, Kind, METAL, Machine, selectors};
use gdr_agent::pci::clear::{AcsPlan, Action, Request, Scope, plan};
use gdr_agent::pci::select::Selectors;
use gdr_agent::pci::topology::Topology;
use gdr_agent::pci::tree::Tree;
use gdr_agent::pci::{Bdf, RawFunction};
use proptest::prelude::*;

const ALL_BITS: u16 = 0x2c;

fn see(functions: &[RawFunction], scope: Scope) -> (Topology, AcsPlan) {
    let tree = Tree::build(functions);
    let topology = Topology::of(&tree, selectors());
    let request = Request {
        scope,
        mask: ALL_BITS,
    };
    let plan = plan(&tree, &topology, request, METAL);
    (topology, plan)
}

/// What the truth says about the ports of a path: redirected, clean, or not to be known.
fn verdict(machine: &Machine, ports: &BTreeSet<Bdf>) -> Option<bool> {
    let states: Vec<Acs> = ports.iter().map(|port| machine.all[port].acs).collect();
    let redirects = |acs: &Acs| matches!(acs, Acs::Control(ctl) if ctl & 0x2c != 0);
    if states.iter().any(redirects) {
        return Some(true);
    }
    let known = |acs: &Acs| matches!(acs, Acs::Control(_) | Acs::Absent);
    states.iter().all(known).then_some(false)
}

fn union_of_paths(machine: &Machine) -> BTreeSet<Bdf> {
    let mut union = BTreeSet::new();
    for gpu in machine.of_kind(Kind::Gpu) {
        for nic in machine.of_kind(Kind::Nic) {
            union.extend(machine.judge(gpu, nic).1);
        }
    }
    union
}

/// The random machines are worth something only if they hold every case.
#[test]
fn random_machines_hold_every_kind_of_path_and_every_verdict() {
    let mut seen: BTreeMap<(&str, Option<bool>), u32> = BTreeMap::new();
    let (mut in_one_device, mut across_domains, mut nested) = (0, 0, 0);
    for seed in 0..300_u32 {
        let choices: Vec<u8> = crate::support::noise(seed).take(300).collect();
        let machine = Machine::random(&choices, false);
        for gpu in machine.of_kind(Kind::Gpu) {
            for nic in machine.of_kind(Kind::Nic) {
                let (kind, ports) = machine.judge(gpu, nic);
                *seen.entry((kind, verdict(&machine, &ports))).or_default() += 1;
                in_one_device += u32::from(gpu.same_device(nic));
                across_domains += u32::from(gpu.domain != nic.domain);
                nested += u32::from(kind == "PXB" && ports.len() >= 3);
            }
        }
    }
    for kind in ["PIX", "PXB", "PHB", "NODE", "SYS"] {
        for verdict in [Some(true), Some(false), None] {
            let count = seen.get(&(kind, verdict)).copied().unwrap_or(0);
            assert!(count >= 5, "{kind} {verdict:?}: {count} of {seen:?}");
        }
    }
    assert!(
        in_one_device >= 5 && across_domains >= 5 && nested >= 5,
        "{in_one_device} {across_domains} {nested}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn paths_equal_the_brute_force_answer(choices in proptest::collection::vec(any::<u8>(), 0..300)) {
        let machine = Machine::random(&choices, false);
        let (topology, _) = see(&machine.functions(), Scope::Paths);
        let (gpus, nics) = (machine.of_kind(Kind::Gpu), machine.of_kind(Kind::Nic));
        prop_assert_eq!(topology.gpus.iter().map(|d| d.bdf).collect::<Vec<_>>(), gpus.clone());
        prop_assert_eq!(topology.nics.iter().map(|d| d.bdf).collect::<Vec<_>>(), nics.clone());
        prop_assert_eq!(topology.paths.len(), gpus.len() * nics.len());
        for path in &topology.paths {
            let (kind, ports) = machine.judge(path.gpu, path.nic);
            prop_assert_eq!(path.kind.to_string(), kind);
            let got: BTreeSet<Bdf> = path.bridges.iter().copied().collect();
            prop_assert_eq!(got.len(), path.bridges.len(), "a port is named once");
            prop_assert_eq!(&got, &ports);
            prop_assert_eq!(path.redirected, verdict(&machine, &ports));
            prop_assert_eq!(path.unknown.is_some(), path.redirected.is_none());
        }
        let on_paths: BTreeSet<Bdf> =
            topology.bridges.iter().filter(|b| b.on_paths > 0).map(|b| b.bdf).collect();
        prop_assert_eq!(on_paths, union_of_paths(&machine));
    }

    #[test]
    fn clearing_by_plan_frees_every_path_and_touches_nothing_else(
        choices in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut machine = Machine::random(&choices, false);
        let (_, plan) = see(&machine.functions(), Scope::Paths);
        let allowed = union_of_paths(&machine);
        for port in plan.to_clear() {
            prop_assert!(allowed.contains(&port.bdf), "{} is on no path", port.bdf);
            let truth = machine.all.get_mut(&port.bdf).unwrap();
            let Acs::Control(old) = truth.acs else { panic!("{} has no readable ACS", port.bdf) };
            let (offset, new) = (usize::from(port.offset.unwrap()), port.new.unwrap());
            prop_assert_eq!(port.ctl, Some(old));
            prop_assert_eq!(new, old & !0x2c, "only redirect bits change");
            truth.config[offset + 6..offset + 8].copy_from_slice(&new.to_le_bytes());
            truth.acs = Acs::Control(new);
        }
        let (topology, again) = see(&machine.functions(), Scope::Paths);
        prop_assert!(topology.paths.iter().all(|path| path.redirected != Some(true)));
        prop_assert_eq!(again.to_clear().count(), 0, "a second run has nothing to do");
    }

    #[test]
    fn a_missing_port_is_never_taken_for_a_clean_one(
        choices in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let machine = Machine::random(&choices, true);
        let (topology, _) = see(&machine.functions(), Scope::Paths);
        for path in &topology.paths {
            let (kind, ports) = machine.judge(path.gpu, path.nic);
            if machine.paths {
                prop_assert_eq!(path.kind.to_string(), kind);
                prop_assert_eq!(path.redirected, verdict(&machine, &ports));
            } else if ports.iter().any(|port| machine.all[port].acs == Acs::Missing) {
                prop_assert_ne!(path.redirected, Some(false), "{} to {}", path.gpu, path.nic);
            }
        }
    }

    #[test]
    fn any_list_of_functions_is_handled(
        seeds in proptest::collection::vec((any::<[u8; 4]>(), any::<[u8; 64]>(), ".{0,60}", any::<bool>()), 0..40),
    ) {
        let functions: Vec<RawFunction> = seeds
            .iter()
            .map(|([bus, device, function, kind], config, path, use_path)| {
                let bdf = Bdf::new(u32::from(kind % 3), bus % 8, device % 4, function % 2);
                let mut config = *config;
                config[14] = kind & 1;
                config[24..27].iter_mut().for_each(|b| *b %= 10);
                let text = path.replace(['a', 'b'], "/0000:01:00.0").replace('c', "/pci0000:00");
                crate::support::raw(bdf, use_path.then(|| format!("{text}/{bdf}")), &config)
            })
            .collect();
        let tree = Tree::build(&functions);
        let everything = Selectors { gpu: &|_, d, _| d % 2 == 0, nic: &|_, d, _| d % 2 == 1 };
        let topology = Topology::of(&tree, everything);
        prop_assert_eq!(topology.paths.len(), topology.gpus.len() * topology.nics.len());
        let request = Request { scope: Scope::All, mask: ALL_BITS };
        let plan = plan(&tree, &topology, request, METAL);
        prop_assert!(plan.ports.iter().all(|port| port.action != Action::Clear || port.offset.is_some()));
        let text = gdr_agent::pci::render::topology(&topology, Default::default());
        prop_assert!(!text.is_empty());
    }
}
