//! How NIC drivers reach GPU memory: every state in which nodes are found, told from files alone.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test looks at the machine from outside"
)]

mod support;

use gdr_tests::node::drivers::{Drivers, Flavour, KERNEL_SIGNER, Peermem, Rdma};
use gdr_tests::node::kmod::Packing;
use gdr_tests::node::{Lockdown, NodeSpec};
use serde_json::Value;
use support::Node;

const KERNEL: &str = "6.1.0-37-amd64";

/// Proprietary driver and OFED: the way is nvidia-peermem if anything is.
fn peermem() -> Drivers {
    Drivers {
        flavour: Flavour::Proprietary,
        rdma: Rdma::Ofed,
        peermem: Peermem::Good,
        ..Drivers::default()
    }
}

fn node(drivers: Drivers) -> Node {
    Node::new(&NodeSpec {
        drivers,
        ..NodeSpec::default()
    })
}

fn plan(node: &Node) -> Value {
    let output = node.run(&["--format", "json", "plan"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn gdr(node: &Node) -> Value {
    plan(node)["gdr"].clone()
}

/// The check of the group `gdr-path`.
fn check(node: &Node) -> Value {
    let output = node.run(&["--format", "json", "verify"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = all["checks"].as_array().unwrap();
    checks
        .iter()
        .find(|check| check["group"] == "gdr-path")
        .unwrap()
        .clone()
}

fn chain(gdr: &Value) -> String {
    let links = gdr["evidence"].as_array().unwrap();
    let line = |e: &Value| {
        let field = |name: &str| e[name].as_str().unwrap().to_owned();
        format!(
            "{} {}: {} [{}]",
            field("says"),
            field("fact"),
            field("value"),
            field("from")
        )
    };
    links.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn assert_missing(node: &Node, id: &str, unknown: bool, because: &str) {
    let gdr = gdr(node);
    assert_eq!(gdr["path"], "none", "{gdr:#}");
    assert_eq!(gdr["missing"]["id"], id, "{gdr:#}");
    assert_eq!(gdr["missing"]["unknown"], unknown, "{gdr:#}");
    assert!(chain(&gdr).contains(because), "{because}\n{}", chain(&gdr));
    let check = check(node);
    assert_eq!(check["id"], id, "{check:#}");
    let outcome = if unknown { "unknown" } else { "failed" };
    assert_eq!(check["outcome"], outcome, "{check:#}");
    assert!(!check["fix"].as_str().unwrap().is_empty());
}

fn steps(plan: &Value) -> Vec<String> {
    let steps = plan["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| step["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_open_driver_goes_through_dma_buf_whatever_the_stub_is() {
    let node = node(Drivers::default());
    let gdr = gdr(&node);
    assert_eq!(gdr["path"], "dma-buf");
    assert_eq!(gdr["kernel"], KERNEL);
    assert_eq!(gdr["missing"], Value::Null);
    assert_eq!(gdr["modules"], serde_json::json!([]));
    let chain = chain(&gdr);
    for link in [
        "yes NVIDIA driver: 570.148.08, open [/proc/driver/nvidia/version]",
        "yes GPUs: Hopper or later [PCI device ids]",
        "yes kernel: 6.1.0-37-amd64 [",
        "yes RDMA stack: the kernel's own, with on-demand paging [/boot/config-6.1.0-37-amd64]",
    ] {
        assert!(chain.contains(link), "{link}\n{chain}");
    }
    assert_eq!(check(&node)["outcome"], "met");
    let text = node.run(&["plan"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(
        text.contains("Way to GPU memory: DMA-BUF, kernel 6.1.0-37-amd64"),
        "{text}"
    );
}

#[test]
fn the_proprietary_driver_goes_through_a_module_that_fits() {
    for (rdma, packing, debian_names) in [
        (Rdma::Ofed, Packing::None, true),
        (Rdma::Ofed, Packing::Gzip, false),
        (Rdma::InboxWithPeers, Packing::Xz, false),
        (Rdma::InboxWithPeers, Packing::Zstd, true),
    ] {
        let node = node(Drivers {
            rdma,
            packing,
            debian_names,
            ..peermem()
        });
        let plan = plan(&node);
        assert_eq!(
            plan["gdr"]["path"], "peermem",
            "{packing:?} {:#}",
            plan["gdr"]
        );
        assert!(steps(&plan).contains(&"modules.load-at-boot".to_owned()));
        // Nothing is loaded for a directory.
        assert!(!steps(&plan).contains(&"modules.load".to_owned()));
        assert_eq!(check(&node)["id"], "peermem.not-loaded");
    }
}

#[test]
fn a_policy_that_names_a_way_gets_that_or_the_reason() {
    let with = |drivers: Drivers, path: &str| {
        let policy = format!("version = 1\n[gdr]\npath = \"{path}\"\n");
        Node::new(&NodeSpec {
            drivers,
            policy: Some(policy),
            ..NodeSpec::default()
        })
    };
    assert_missing(
        &with(peermem(), "dma-buf"),
        "dma-buf.unavailable",
        false,
        "no NVIDIA driver: 570.148.08, proprietary",
    );
    let open = Drivers {
        rdma: Rdma::Ofed,
        peermem: Peermem::Good,
        ..Drivers::default()
    };
    assert_eq!(gdr(&with(open.clone(), "peermem"))["path"], "peermem");
    assert_eq!(gdr(&with(open, "dma-buf"))["path"], "dma-buf");
    assert_missing(
        &with(Drivers::default(), "peermem"),
        "peermem.stub",
        false,
        "a stub",
    );
}

#[test]
fn each_state_of_the_module_is_called_by_its_name() {
    for (state, id, because) in [
        (
            Peermem::None,
            "peermem.not-installed",
            "no module nvidia_current_peermem",
        ),
        (
            Peermem::Stub,
            "peermem.stub",
            "a stub: it does not use ib_register_peer_memory_client",
        ),
        (
            Peermem::OtherInterface,
            "peermem.abi-mismatch",
            "built against ib_register_peer_memory_client 0x9b2f0e11, and the RDMA core has 0x1d0c5e5a",
        ),
        (
            Peermem::OtherBuild,
            "peermem.abi-mismatch",
            "1 of another build than kernel 6.1.0-37-amd64 (module_layout: 0x2a7c11d4, 0x9060323f)",
        ),
        (
            Peermem::OtherKernel,
            "peermem.wrong-kernel",
            "6.1.0-33-amd64, and the kernel is 6.1.0-37-amd64",
        ),
        (
            Peermem::OtherOptions,
            "peermem.wrong-kernel",
            "`6.1.0-37-amd64 SMP mod_unload`",
        ),
        (
            Peermem::OtherDriver,
            "peermem.abi-mismatch",
            "nvidia-peermem is of 535.261.03, and the driver is 570.148.08",
        ),
    ] {
        let node = node(Drivers {
            peermem: state,
            ..peermem()
        });
        assert_missing(&node, id, false, because);
        let plan = plan(&node);
        assert!(!steps(&plan).iter().any(|step| step.starts_with("modules.")));
        // Whoever installs packages has to know for which kernels, and why.
        let modules = plan["gdr"]["modules"].as_array().unwrap();
        assert_eq!(modules.len(), 2, "{modules:#?}");
        for module in modules {
            assert_eq!(module["module"], "nvidia-peermem");
            assert_eq!(module["version"], "570.148.08");
            assert_eq!(module["flavour"], "proprietary");
        }
        assert_eq!(modules[1]["kernel"], KERNEL);
        assert_eq!(modules[1]["finding"], id);
    }
}

#[test]
fn a_core_without_the_interface_is_not_a_fault_of_the_module() {
    let inbox = node(Drivers {
        rdma: Rdma::Inbox,
        ..peermem()
    });
    assert_missing(
        &inbox,
        "peermem.no-api",
        false,
        "no RDMA core: the kernel's own, without ib_register",
    );
    let none = node(Drivers {
        rdma: Rdma::None,
        ..peermem()
    });
    assert_missing(
        &none,
        "peermem.no-api",
        false,
        "no RDMA core: no ib_core for this kernel",
    );
}

#[test]
fn a_module_of_another_release_fits_where_all_versions_do() {
    // As Red Hat's weak updates: the vermagic names another release, and every version is the same.
    let node = node(peermem());
    let path = format!("usr/lib/modules/{KERNEL}/updates/dkms/nvidia-current-peermem.ko");
    let bytes = node.read(&path);
    let at = bytes
        .windows(KERNEL.len())
        .position(|w| w == KERNEL.as_bytes())
        .unwrap();
    let mut other = bytes.clone();
    other[at..at + KERNEL.len()].copy_from_slice(b"6.1.0-33-amd64");
    node.write(&path, &other);
    let gdr = gdr(&node);
    assert_eq!(gdr["path"], "peermem", "{gdr:#}");
    assert!(chain(&gdr).contains("6.1.0-33-amd64, with the same versions of symbols"));
}

#[test]
fn what_cannot_be_read_is_unknown() {
    let node = node(peermem());
    let path = format!("usr/lib/modules/{KERNEL}/updates/dkms/nvidia-current-peermem.ko");
    let bytes = node.read(&path);
    for damaged in [&b"\x7fELF"[..], b"", &bytes[..200], b"\x28\xb5\x2f\xfdxxxx"] {
        node.write(&path, damaged);
        assert_missing(
            &node,
            "peermem.unreadable",
            true,
            "unknown nvidia-peermem: cannot ",
        );
    }
    node.write(&path, &bytes);
    let core = format!("usr/lib/modules/{KERNEL}/updates/dkms/ib_core.ko");
    node.write(&core, b"\x7fELF");
    // The running kernel's symbols tell the same, while the core is loaded.
    let found = gdr(&node);
    assert_eq!(found["path"], "peermem", "{found:#}");
    assert!(
        chain(&found).contains("OFED, with ib_register_peer_memory_client [/proc/kallsyms]"),
        "{}",
        chain(&found)
    );
    let symbols = String::from_utf8(node.read("proc/kallsyms")).unwrap();
    let without = symbols.replace(
        "T ib_register_peer_memory_client\t",
        "T ib_register_peer_memory_client_v2\t",
    );
    assert_ne!(symbols, without);
    node.write("proc/kallsyms", without.as_bytes());
    assert_missing(
        &node,
        "peermem.no-api",
        false,
        "OFED, without ib_register_peer_memory_client",
    );
    node.write("proc/kallsyms", b"0000000000000000 T dma_buf_export\n");
    assert_missing(
        &node,
        "peermem.no-api",
        true,
        "unknown RDMA core: cannot read",
    );

    let open = self::node(Drivers::default());
    std::fs::remove_file(open.path().join(format!("boot/config-{KERNEL}"))).unwrap();
    assert_missing(
        &open,
        "peermem.stub",
        true,
        "unknown RDMA stack: the kernel's configuration",
    );
}

#[test]
fn a_core_that_is_part_of_the_kernel() {
    let put = |drivers: Drivers| {
        let node = node(Drivers {
            rdma: Rdma::None,
            ..drivers
        });
        let builtin = format!("usr/lib/modules/{KERNEL}/modules.builtin");
        node.write(&builtin, b"kernel/drivers/infiniband/core/ib_core.ko\n");
        node.write("proc/kallsyms", b"");
        node
    };
    // The configuration tells all that DMA-BUF takes.
    assert_eq!(gdr(&put(Drivers::default()))["path"], "dma-buf");
    let node = put(peermem());
    assert_missing(
        &node,
        "peermem.no-api",
        true,
        "part of the kernel: whether it has",
    );
    let build = format!("usr/lib/modules/{KERNEL}/build");
    std::fs::create_dir_all(node.path().join(&build)).unwrap();
    let symvers = format!("{build}/Module.symvers");
    node.write(
        &symvers,
        b"0x1d0c5e5a\tib_register_peer_memory_client\tvmlinux\tEXPORT_SYMBOL\t\n",
    );
    assert_eq!(gdr(&node)["path"], "peermem");
    node.write(
        &symvers,
        b"0x1d0c5e5b\tib_register_peer_memory_client\tvmlinux\tEXPORT_SYMBOL\t\n",
    );
    assert_missing(
        &node,
        "peermem.abi-mismatch",
        false,
        "the RDMA core has 0x1d0c5e5b",
    );
    node.write(
        &symvers,
        b"0xe2ffcd05\tib_register_client\tvmlinux\tEXPORT_SYMBOL\t\n",
    );
    assert_missing(
        &node,
        "peermem.no-api",
        false,
        "without ib_register_peer_memory_client",
    );
}

#[test]
fn where_the_configuration_is_does_not_matter() {
    let node = node(Drivers::default());
    let boot = node.path().join(format!("boot/config-{KERNEL}"));
    let text = std::fs::read(&boot).unwrap();
    std::fs::remove_file(&boot).unwrap();
    let packed = Packing::Gzip.pack(&text).unwrap();
    node.write("proc/config.gz", &packed);
    let found = gdr(&node);
    assert_eq!(found["path"], "dma-buf", "{found:#}");
    assert!(chain(&found).contains("[/proc/config.gz]"));
    node.write("proc/config.gz", &packed[..packed.len() / 2]);
    assert_eq!(gdr(&node)["missing"]["unknown"], true);
    std::fs::remove_file(node.path().join("proc/config.gz")).unwrap();
    node.write(&format!("usr/lib/modules/{KERNEL}/config"), &text);
    assert!(chain(&gdr(&node)).contains(&format!("[/lib/modules/{KERNEL}/config]")));
    // Without on-demand paging mlx5 registers no DMA-BUF memory.
    let without = String::from_utf8(text)
        .unwrap()
        .replace("CONFIG_INFINIBAND_ON_DEMAND_PAGING=y", "");
    node.write(
        &format!("usr/lib/modules/{KERNEL}/config"),
        without.as_bytes(),
    );
    assert_missing(
        &node,
        "peermem.stub",
        false,
        "without CONFIG_INFINIBAND_ON_DEMAND_PAGING",
    );
}

#[test]
fn signatures_count_where_the_kernel_asks_for_them() {
    let with = |signer: Option<&str>, lockdown| {
        Node::new(&NodeSpec {
            drivers: Drivers {
                signer: signer.map(str::to_owned),
                packing: Packing::Xz,
                ..peermem()
            },
            lockdown,
            ..NodeSpec::default()
        })
    };
    let unsigned = with(None, Lockdown::Integrity);
    assert_missing(
        &unsigned,
        "peermem.unsigned",
        false,
        "no signature: none, and the kernel takes signed modules only [/sys/kernel/security/lockdown]",
    );
    assert_eq!(gdr(&with(None, Lockdown::None))["path"], "peermem");

    let trusted = gdr(&with(Some(KERNEL_SIGNER), Lockdown::Confidentiality));
    assert_eq!(trusted["path"], "peermem");
    assert!(
        chain(&trusted)
            .contains("Debian Secure Boot CA, sha256, who signed this kernel's own modules"),
        "{}",
        chain(&trusted)
    );
    let own = gdr(&with(Some("DKMS module signing key"), Lockdown::Integrity));
    assert_eq!(own["path"], "peermem");
    assert!(chain(&own).contains(
        "DKMS module signing key, sha256; whether this kernel trusts that key is not known"
    ));

    let forced = with(None, Lockdown::None);
    std::fs::create_dir_all(forced.path().join("sys/module/module/parameters")).unwrap();
    forced.write("sys/module/module/parameters/sig_enforce", b"Y\n");
    assert_missing(&forced, "peermem.unsigned", false, "parameters/sig_enforce");
    forced.write("sys/module/module/parameters/sig_enforce", b"N\n");
    assert_eq!(gdr(&forced)["path"], "peermem");
}

#[test]
fn what_modprobe_is_told_counts() {
    let node = node(Drivers {
        debian_names: false,
        ..peermem()
    });
    node.write(
        "etc/modprobe.d/off.conf",
        b"install nvidia_peermem /bin/false\n",
    );
    assert_missing(
        &node,
        "peermem.blocked",
        false,
        "switched off: `/bin/false`",
    );
    node.write("etc/modprobe.d/off.conf", b"blacklist nvidia-peermem\n");
    assert_missing(
        &node,
        "peermem.blocked",
        false,
        "it is not loaded at boot [/etc/modprobe.d/off.conf]",
    );
    node.write(
        "etc/modprobe.d/off.conf",
        b"install nvidia-peermem /opt/load-it\n",
    );
    assert_missing(
        &node,
        "peermem.load-failed",
        true,
        "what `/opt/load-it` does is not known",
    );
    // A file of the same name in /etc hides the one of the package.
    std::fs::create_dir_all(node.path().join("usr/lib/modprobe.d")).unwrap();
    node.write(
        "usr/lib/modprobe.d/off.conf",
        b"install nvidia-peermem /bin/false\n",
    );
    node.write("etc/modprobe.d/off.conf", b"# nothing\n");
    assert_eq!(gdr(&node)["path"], "peermem");
}

#[test]
fn a_platform_without_it_is_said_to_have_none() {
    let node = node(Drivers::default());
    for bdf in std::fs::read_dir(node.path().join("sys/bus/pci/devices")).unwrap() {
        let dir = bdf.unwrap().path();
        let uevent = std::fs::read_to_string(dir.join("uevent")).unwrap();
        if uevent.contains("PCI_ID=10DE:2330") {
            let spark = uevent.replace("PCI_ID=10DE:2330", "PCI_ID=10DE:2E12");
            std::fs::write(dir.join("uevent"), spark).unwrap();
        }
    }
    assert_missing(
        &node,
        "platform.no-gdr",
        false,
        "is a GB10, which has no GPUDirect RDMA",
    );
    let plan = plan(&node);
    assert!(!steps(&plan).iter().any(|step| step.starts_with("modules.")));
}

#[test]
fn gpus_too_old_for_the_open_driver_go_through_the_module() {
    let node = node(Drivers {
        rdma: Rdma::Ofed,
        peermem: Peermem::Good,
        ..Drivers::default()
    });
    for bdf in std::fs::read_dir(node.path().join("sys/bus/pci/devices")).unwrap() {
        let dir = bdf.unwrap().path();
        let uevent = std::fs::read_to_string(dir.join("uevent")).unwrap();
        std::fs::write(dir.join("uevent"), uevent.replace("10DE:2330", "10DE:1DB1")).unwrap();
    }
    let gdr = gdr(&node);
    assert_eq!(gdr["path"], "peermem");
    assert!(
        chain(&gdr).contains("Volta, older than Turing"),
        "{}",
        chain(&gdr)
    );
}

#[test]
fn the_loaded_module_and_its_client() {
    let node = node(peermem());
    let modules = String::from_utf8(node.read("proc/modules")).unwrap();
    node.write(
        "proc/modules",
        format!("nvidia_peermem 16384 3 - Live 0x0 (OE)\n{modules}").as_bytes(),
    );
    let put = |path: &str, text: &str| {
        let at = node.path().join(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, text).unwrap();
    };
    put("sys/module/nvidia_peermem/version", "570.148.08\n");
    put("sys/module/nvidia_peermem/refcnt", "3\n");
    assert_eq!(check(&node)["outcome"], "met");
    for place in [
        "sys/kernel/mm/memory_peers",
        "sys/kernel/memory_peers",
        "sys/memory_peers",
    ] {
        put(&format!("{place}/nvidia-fs/version"), "1.0\n");
        let none = check(&node);
        assert_eq!(none["outcome"], "failed", "{place} {none:#}");
        assert_eq!(none["id"], "peermem.load-failed");
        put(&format!("{place}/nv_mem/version"), "570.148.08\n");
        put(&format!("{place}/nv_mem/num_alloc_mrs"), "40\n");
        put(&format!("{place}/nv_mem/num_dealloc_mrs"), "37\n");
        put("proc/driver/nvidia-peermem/clients", "mlx5_0 (in_use=1)\n");
        put(
            "sys/kernel/debug/dma_buf/bufinfo",
            "00065536\t00000002\t00080005\t00000003\tnv_dmabuf\t00000124\t\n\tAttached Devices:\n\t0000:29:00.0\n",
        );
        let met = check(&node);
        assert_eq!(met["outcome"], "met", "{place} {met:#}");
        let evidence = met["evidence"].to_string();
        for said in [
            "refcnt: 3 memory regions",
            &format!("/{place}/nv_mem: 3 memory regions"),
            "GPU memory is attached to 0000:29:00.0",
            "/proc/driver/nvidia-peermem/clients: mlx5_0 (in_use=1)",
        ] {
            assert!(evidence.contains(said), "{said}\n{met:#}");
        }
        std::fs::remove_dir_all(node.path().join(place)).unwrap();
    }
}

#[test]
fn the_kernel_log_tells_why_it_is_not_loaded() {
    let node = node(peermem());
    std::fs::create_dir_all(node.path().join("dev")).unwrap();
    // Of a boot that was not asked to load it, the log is not read.
    let line = "4,1,2,-;nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)\n";
    node.write("dev/kmsg", line.as_bytes());
    assert_eq!(check(&node)["id"], "peermem.not-loaded");
    node.write("etc/modules-load.d/rdma.conf", b"nvidia-peermem\n");
    for (line, id) in [
        (
            "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client",
            "peermem.abi-mismatch",
        ),
        (
            "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)",
            "peermem.no-api",
        ),
        ("Loading of unsigned module is rejected", "peermem.unsigned"),
        (
            "nvidia-peermem nv_mem_client_init:535 ERROR nv_mem_client_init -- error while registering client",
            "peermem.name-taken",
        ),
        (
            "nvidia: module license 'NVIDIA' taints kernel.",
            "peermem.not-loaded",
        ),
    ] {
        node.write("dev/kmsg", format!("4,100,2000,-;{line}\n").as_bytes());
        let check = check(&node);
        assert_eq!(check["id"], id, "{check:#}");
        assert_eq!(check["outcome"], "failed");
    }
    let modules = String::from_utf8(node.read("proc/modules")).unwrap();
    node.write(
        "proc/modules",
        format!("nv_peer_mem 16384 0 - Live 0x0 (OE)\n{modules}").as_bytes(),
    );
    assert_eq!(check(&node)["id"], "peermem.name-taken");
}

/// An image: no `/proc`, no `/sys`, nothing runs.
fn image(drivers: Drivers) -> Node {
    let node = node(drivers);
    for dir in ["proc", "sys", "run"] {
        std::fs::remove_dir_all(node.path().join(dir)).unwrap();
        std::fs::create_dir(node.path().join(dir)).unwrap();
    }
    node
}

#[test]
fn an_image_is_judged_by_the_kernel_that_it_boots() {
    let open = image(Drivers::default());
    let decision = gdr(&open);
    assert_eq!(decision["path"], "dma-buf", "{decision:#}");
    assert_eq!(decision["kernel"], KERNEL);
    assert!(
        chain(&decision).contains("nvidia-current-open.ko]"),
        "{}",
        chain(&decision)
    );

    let good = image(peermem());
    let decision = gdr(&good);
    assert_eq!(
        (&decision["path"], &decision["kernel"]),
        (&"peermem".into(), &KERNEL.into())
    );
    // The builder's kernel is in /proc while an image is built in a chroot: it is not the image's.
    std::fs::create_dir_all(good.path().join("proc/sys/kernel")).unwrap();
    good.write("proc/sys/kernel/osrelease", b"6.17.0-builder\n");
    assert_eq!(gdr(&good)["kernel"], KERNEL);
    let before = good.path().join("etc/modules-load.d/gdr-agent.conf");
    let baked = good.run(&["--format", "json", "apply", "--bake"]);
    let baked: Value = serde_json::from_slice(&baked.stdout).unwrap();
    let steps: Vec<String> = steps(&baked);
    assert!(!steps.contains(&"modules.load".to_owned()), "{steps:?}");
    assert!(
        steps.contains(&"modules.load-at-boot".to_owned()),
        "{steps:?}"
    );
    // There is nothing to try at boot, so the image is done.
    assert_eq!(baked["status"]["state"], "COMMITTED", "{baked:#}");
    assert!(before.exists());
}

#[test]
fn dkms_in_an_image_built_for_the_builders_kernel() {
    let node = image(Drivers {
        peermem: Peermem::None,
        ..peermem()
    });
    // What `dkms autoinstall` does in a chroot: it takes `uname -r` of the machine that builds the image.
    let builder = "6.17.0-builder";
    let from = node
        .path()
        .join(format!("usr/lib/modules/{KERNEL}/updates/dkms"));
    let to = node
        .path()
        .join(format!("usr/lib/modules/{builder}/updates/dkms"));
    std::fs::create_dir_all(&to).unwrap();
    std::fs::copy(
        from.join("nvidia-current.ko"),
        to.join("nvidia-current-peermem.ko"),
    )
    .unwrap();
    node.write(
        &format!("usr/lib/modules/{builder}/modules.dep"),
        b"updates/dkms/nvidia-current-peermem.ko:\n",
    );
    let dkms = format!("var/lib/dkms/nvidia-current/570.148.08/{builder}/x86_64");
    std::fs::create_dir_all(node.path().join(dkms)).unwrap();
    assert_missing(
        &node,
        "peermem.not-installed",
        false,
        "nvidia-current-peermem.ko is for 6.17.0-builder, of which there is no kernel here",
    );
    let gdr = gdr(&node);
    let kernels: Vec<&str> = gdr["modules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|module| module["kernel"].as_str().unwrap())
        .collect();
    assert_eq!(kernels, ["6.1.0-35-amd64", KERNEL]);
}

#[test]
fn a_kernel_that_would_lose_the_way_is_told() {
    let node = node(peermem());
    let old = "6.1.0-35-amd64";
    let path = format!("usr/lib/modules/{old}/updates/dkms/nvidia-current-peermem.ko");
    std::fs::remove_file(node.path().join(&path)).unwrap();
    let dep = format!("usr/lib/modules/{old}/modules.dep");
    let text = String::from_utf8(node.read(&dep)).unwrap();
    let text: String = text
        .lines()
        .filter(|l| !l.contains("peermem"))
        .map(|l| format!("{l}\n"))
        .collect();
    node.write(&dep, text.as_bytes());
    let plan = plan(&node);
    let gdr = &plan["gdr"];
    assert_eq!(gdr["path"], "peermem");
    assert_eq!(gdr["others"][0]["kernel"], old, "{gdr:#}");
    assert_eq!(gdr["others"][0]["missing"]["id"], "peermem.not-installed");
    assert_eq!(gdr["modules"][0]["kernel"], old);
    let notes = plan["notes"].to_string();
    assert!(
        notes.contains("kernel 6.1.0-35-amd64 would have no way to GPU memory"),
        "{notes}"
    );
}

#[test]
fn facts_say_who_installed_the_driver() {
    let origin = |node: &Node| {
        let facts = node.json(&["facts"], 0);
        facts["facts"]["gdr"]["origin"]["value"].clone()
    };
    let debian = node(Drivers::default());
    assert_eq!(origin(&debian), "distribution");
    std::fs::create_dir_all(debian.path().join("usr/bin")).unwrap();
    debian.write("usr/bin/nvidia-uninstall", b"");
    assert_eq!(origin(&debian), "runfile");

    let upstream = node(Drivers {
        debian_names: false,
        ..peermem()
    });
    assert_eq!(origin(&upstream), Value::Null);
    std::fs::create_dir_all(upstream.path().join("etc/apt/sources.list.d")).unwrap();
    upstream.write(
        "etc/apt/sources.list.d/cuda-debian12-x86_64.list",
        b"deb https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/ /\n",
    );
    assert_eq!(origin(&upstream), "nvidia-repository");
}
