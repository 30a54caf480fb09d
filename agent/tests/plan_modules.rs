//! What is loaded and unloaded, on a node as if it ran here: a directory is never loaded into.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test looks at the machine from outside"
)]

use gdr_agent::package::{Change, Install, Manager, Survey};
use gdr_agent::plan::{GdrPath, Plan};
use gdr_agent::sys::Root;
use gdr_agent::world::World;
use gdr_policy::Policy;
use gdr_tests::node::drivers::{Drivers, Flavour, Peermem, Rdma};
use gdr_tests::node::{NodeSpec, create};

fn good() -> Drivers {
    Drivers {
        flavour: Flavour::Proprietary,
        rdma: Rdma::Ofed,
        peermem: Peermem::Good,
        ..Drivers::default()
    }
}

fn world(drivers: Drivers) -> World {
    let dir = tempfile::tempdir().unwrap();
    let spec = NodeSpec {
        drivers,
        ..NodeSpec::default()
    };
    create(dir.path(), &spec).unwrap();
    let root = Root::open(dir.path()).unwrap();
    let mut world = World::read(&root, &Policy::default()).unwrap();
    world.facts.live = true;
    world
}

fn plan(world: &World) -> Plan {
    let policy = Policy::default();
    world.plan(&policy, &world.ports(&policy), "digest", "txn", None)
}

fn modules(plan: &Plan) -> Vec<&str> {
    let steps = plan.steps.iter().map(|step| step.id.as_str());
    steps.filter(|id| id.starts_with("modules.")).collect()
}

fn load(world: &mut World, name: &str, users: u64) {
    let modules = &mut world.facts.modules;
    modules
        .loaded
        .value
        .as_mut()
        .unwrap()
        .insert(name.to_owned());
    modules.refcounts.insert(name.to_owned(), users);
}

#[test]
fn it_is_loaded_now_and_at_every_boot() {
    let mut world = world(good());
    assert_eq!(
        modules(&plan(&world)),
        ["modules.load", "modules.load-at-boot"]
    );
    load(&mut world, "nvidia_peermem", 0);
    assert_eq!(modules(&plan(&world)), ["modules.load-at-boot"]);
}

#[test]
fn nothing_is_loaded_while_an_image_is_built() {
    // In a chroot the root is `/`, and the kernel that runs is the builder's.
    let mut world = world(good());
    world.facts.bake = true;
    let plan = plan(&world);
    assert_eq!(modules(&plan), ["modules.load-at-boot"]);
    assert!(plan.bake);
}

#[test]
fn it_takes_a_gpu_its_driver_and_the_rdma_core() {
    let all = world(good());
    for gone in ["nvidia", "ib_core"] {
        let mut world = World {
            facts: all.facts.clone(),
            functions: all.functions.clone(),
            conditions: all.conditions,
            committed: None,
            quarantine: all.quarantine.clone(),
            packages: None,
            more: all.more.clone(),
        };
        world
            .facts
            .modules
            .loaded
            .value
            .as_mut()
            .unwrap()
            .remove(gone);
        assert_eq!(modules(&plan(&world)), ["modules.load-at-boot"], "{gone}");
    }
    let mut world = all;
    world
        .functions
        .retain(|function| function.vendor != Some(0x10de));
    assert_eq!(modules(&plan(&world)), ["modules.load-at-boot"]);
}

#[test]
fn the_old_module_makes_way_only_if_nothing_uses_it() {
    let mut idle = world(good());
    load(&mut idle, "nv_peer_mem", 0);
    let with = plan(&idle);
    assert_eq!(
        modules(&with),
        ["modules.unload", "modules.load", "modules.load-at-boot"]
    );
    assert!(
        with.notes
            .iter()
            .any(|note| note.starts_with("peermem.name-taken"))
    );

    load(&mut idle, "nv_peer_mem", 2);
    let busy = plan(&idle);
    assert_eq!(modules(&busy), ["modules.load-at-boot"]);
    assert!(
        busy.notes
            .iter()
            .any(|note| note.starts_with("peermem.name-taken: nv_peer_mem is loaded and in use")),
        "{:?}",
        busy.notes
    );
}

#[test]
fn a_core_that_was_replaced_while_it_runs_is_not_loaded_into() {
    let mut world = world(good());
    let target = &world.facts.gdr.targets;
    let running = world.facts.running.release.get().unwrap();
    let target = target.iter().find(|t| t.release == *running).unwrap();
    let now = target.rdma.get().unwrap().srcversion.clone().unwrap();
    let set = |world: &mut World, hash: &str| {
        world.facts.gdr.in_use.ib_core.value = Some(hash.to_owned());
    };
    set(&mut world, &now);
    assert!(modules(&plan(&world)).contains(&"modules.load"));
    set(&mut world, "0123456789ABCDEF");
    let plan = plan(&world);
    assert_eq!(modules(&plan), ["modules.load-at-boot"]);
    assert!(
        plan.notes
            .iter()
            .any(|note| note.contains("the ib_core that is loaded is not")),
        "{:?}",
        plan.notes
    );
}

#[test]
fn what_cannot_work_is_not_loaded() {
    for peermem in [Peermem::Stub, Peermem::OtherInterface, Peermem::OtherKernel] {
        let world = world(Drivers { peermem, ..good() });
        let plan = plan(&world);
        assert_eq!(modules(&plan), [""; 0], "{peermem:?}");
        assert_eq!(plan.gdr.unwrap().path, GdrPath::None);
    }
}

#[test]
fn what_a_package_brings_is_loaded_after_it() {
    let mut world = world(Drivers {
        peermem: Peermem::None,
        ..good()
    });
    assert_eq!(modules(&plan(&world)), [""; 0]);
    let kernel = world.facts.running.release.get().unwrap().clone();
    let change = Change {
        name: "nvidia-kernel-dkms".to_owned(),
        old: None,
        new: Some("570.148.08-1".to_owned()),
    };
    let mut install = Install {
        manager: Manager::Apt,
        specs: vec!["nvidia-kernel-dkms=570.148.08-1".to_owned()],
        kernels: vec![kernel],
        changes: vec![change],
    };
    let with = |world: &mut World, install: &Install| {
        world.packages = Some(Survey {
            install: Some(install.clone()),
            ..Survey::default()
        });
        plan(world)
    };
    let plan = with(&mut world, &install);
    let steps: Vec<&str> = plan.steps.iter().map(|step| step.id.as_str()).collect();
    assert!(
        steps.starts_with(&["package.install", "modules.load", "modules.load-at-boot"]),
        "{steps:?}"
    );
    assert!(!plan.notes.iter().any(|note| note.starts_with("peermem.")));
    // The trial boot loads it by its command line.
    let trial = plan.trial.unwrap();
    assert!(
        trial.args.contains("modules_load=nvidia-peermem"),
        "{}",
        trial.args
    );
    // For another kernel it is no help to this one.
    install.kernels = vec!["6.9.9".to_owned()];
    let plan = with(&mut world, &install);
    assert_eq!(modules(&plan), [""; 0]);
    assert!(
        plan.notes
            .iter()
            .any(|note| note.starts_with("peermem.not-installed"))
    );
}
