//! Modules in a running kernel: what the agent says of a file before anything is loaded is what modprobe and the kernel say
//! when somebody tries, and loading and unloading do what the plan says.
//!
//! The modules are stand-ins (`tests/kmod`), built for the machine's own kernel.

use std::process::Command;

use gdr_tests::kmod::{Built, Headers};
use gdr_tests::machine::{Error, Machine, agent_image_of};

use crate::common::*;
use crate::policy::peermem;

/// What the kernel and modprobe say of a module that they refuse.
struct Refused {
    /// The build of the RDMA core, and of nvidia-peermem.
    builds: (&'static str, &'static str),
    id: &'static str,
    modprobe: &'static str,
    kernel: Option<&'static str>,
}

const REFUSED: [Refused; 4] = [
    Refused {
        builds: ("core", "stub"),
        id: "peermem.stub",
        modprobe: "Invalid argument",
        kernel: None,
    },
    Refused {
        builds: ("core", "magic"),
        id: "peermem.wrong-kernel",
        modprobe: "Exec format error",
        kernel: Some("version magic '5.10.0-1-other"),
    },
    Refused {
        builds: ("core", "other"),
        id: "peermem.abi-mismatch",
        modprobe: "Invalid argument",
        kernel: Some("disagrees about version of symbol ib_register_peer_memory_client"),
    },
    Refused {
        builds: ("core-no-peers", "good"),
        id: "peermem.no-api",
        modprobe: "Unknown symbol in module",
        kernel: Some("Unknown symbol ib_register_peer_memory_client (err -2)"),
    },
];

/// The Debian whose kernel has headers here, its image, and those headers.
fn suite() -> Option<(&'static str, Headers)> {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let suite = ["bookworm", "trixie"]
        .into_iter()
        .find(|name| release.contains(&format!("VERSION_CODENAME={name}")));
    let headers = Headers::all()
        .into_iter()
        .rfind(|h| h.release.ends_with("-amd64"));
    let found = suite.zip(headers);
    if found.is_none() {
        let why = "modules in the machine: not tested: no headers of a Debian's kernel here (linux-headers-amd64)";
        assert!(std::env::var_os("CI").is_none(), "{why}");
        eprintln!("{why}");
    }
    found
}

/// Puts a module where depmod prefers it, without the debugger's part.
fn put(machine: &mut Machine, built: &Built, file: &str) -> Result<(), Error> {
    let path = built.path(file);
    let small = path.with_extension("small");
    let strip = Command::new("strip")
        .args(["--strip-debug", "-o"])
        .args([&small, &path])
        .status();
    assert!(strip.unwrap().success());
    let packed = Command::new("sh")
        .args(["-c", "gzip -9 | base64"])
        .stdin(std::fs::File::open(&small).unwrap())
        .output()
        .unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    machine.put(
        "/root/packed",
        0o600,
        std::str::from_utf8(&packed.stdout).unwrap(),
    )?;
    machine.ok(&format!(
        "mkdir -p /lib/modules/$(uname -r)/updates && base64 -d < /root/packed | gunzip > /lib/modules/$(uname -r)/updates/{name}"
    ))?;
    Ok(())
}

/// This core in the kernel and on the disk, and this nvidia-peermem on the disk.
fn install(machine: &mut Machine, built: &Built, core: &str, peermem: &str) -> Result<(), Error> {
    machine.ok("for module in nvidia_peermem nv_peer_mem other_peer ib_core; do ! grep -q ^$module' ' /proc/modules || rmmod $module || exit 1; done")?;
    put(machine, built, &format!("{core}/ib_core.ko"))?;
    put(machine, built, &format!("{peermem}/nvidia-peermem.ko"))?;
    machine.ok("depmod && modprobe ib_core").map(|_| ())
}

fn loaded(machine: &mut Machine, module: &str) -> Result<bool, Error> {
    let ran = machine.run(&format!("grep -q '^{module} ' /proc/modules"))?;
    Ok(ran.status == 0)
}

/// Whether a step of this kind is in a plan.
fn step<'a>(json: &'a serde_json::Value, kind: &str) -> Option<&'a serde_json::Value> {
    json["steps"].as_array()?.iter().find(|s| s["kind"] == kind)
}

#[test]
fn modules_load_or_do_not_as_their_files_said() -> Result<(), Error> {
    let Some((suite, headers)) = suite() else {
        return Ok(());
    };
    let Some(image) = agent_image_of(suite, "modules")? else {
        return Ok(());
    };
    let built = Built::new(&headers).unwrap_or_else(|e| panic!("{e}"));
    let (mut machine, before) = ready(&image, "modules", &peermem())?;
    assert_eq!(
        machine.ok("uname -r")?,
        headers.release,
        "the headers here are of another kernel than the machine's: install the newest linux-headers-amd64"
    );
    put(&mut machine, &built, "driver/nvidia.ko")?;
    machine.ok("depmod && modprobe nvidia")?;

    each_is_refused_as_foretold(&mut machine, &built)?;
    it_is_loaded_and_unloaded(&mut machine, &built)?;
    the_old_module_makes_way(&mut machine, &built)?;
    a_taken_name_is_told(&mut machine, &built)?;
    an_unsigned_one_under_enforcement(&mut machine, &built)?;

    machine.ok("rm -r /lib/modules/$(uname -r)/updates && depmod")?;
    let changes: Vec<String> = before.changes(&gdr_tests::machine::Inventory::take(&mut machine)?);
    assert_eq!(changes, Vec::<String>::new());
    Ok(())
}

fn each_is_refused_as_foretold(machine: &mut Machine, built: &Built) -> Result<(), Error> {
    for refused in &REFUSED {
        let (core, peermem) = refused.builds;
        install(machine, built, core, peermem)?;
        let plan = machine.agent("plan")?;
        let missing = &plan.json["gdr"]["missing"];
        assert_eq!(missing["id"], refused.id, "{}", plan.json["gdr"]);
        assert_ne!(missing["unknown"], true, "{}", plan.json["gdr"]);
        assert!(step(&plan.json, "module-load").is_none(), "{}", plan.json);

        machine.ok("dmesg --clear")?;
        let modprobe = machine.run("modprobe nvidia-peermem")?;
        assert_ne!(modprobe.status, 0, "{}", refused.id);
        assert!(
            modprobe.stderr.contains(refused.modprobe),
            "{}: {}",
            refused.id,
            modprobe.stderr
        );
        let log = machine.ok("dmesg")?;
        match refused.kernel {
            Some(text) => assert!(log.contains(text), "{}: {log}", refused.id),
            None => assert!(!log.contains("nvidia_peermem"), "{}: {log}", refused.id),
        }
    }
    Ok(())
}

fn it_is_loaded_and_unloaded(machine: &mut Machine, built: &Built) -> Result<(), Error> {
    install(machine, built, "core", "good")?;
    let plan = machine.agent("plan")?;
    assert!(step(&plan.json, "module-load").is_some(), "{}", plan.json);
    let verify = machine.agent("verify")?;
    assert_eq!(verify.status, 3, "{}", verify.json);
    assert!(!loaded(machine, "nvidia_peermem")?);

    let apply = machine.agent("apply --no-reboot")?;
    assert_eq!(
        (apply.status, apply.flag("changed")),
        (0, Some(true)),
        "{}\n{}",
        apply.json,
        apply.stderr
    );
    assert!(loaded(machine, "nvidia_peermem")?);
    let verify = machine.agent("verify")?;
    assert_eq!(verify.status, 0, "{}", verify.json);
    let again = machine.agent("apply --no-reboot")?;
    assert_eq!(again.flag("changed"), Some(false), "{}", again.json);

    let back = machine.agent("rollback")?;
    assert_eq!(back.status, 0, "{}\n{}", back.json, back.stderr);
    assert!(!loaded(machine, "nvidia_peermem")?);
    machine.ok("test ! -e /etc/modules-load.d/gdr-agent.conf")?;
    Ok(())
}

fn the_old_module_makes_way(machine: &mut Machine, built: &Built) -> Result<(), Error> {
    put(machine, built, "legacy/nv_peer_mem.ko")?;
    machine.ok("depmod && modprobe nv_peer_mem")?;
    let apply = machine.agent("apply --no-reboot")?;
    assert_eq!(apply.status, 0, "{}\n{}", apply.json, apply.stderr);
    assert!(step(&apply.json, "module-unload").is_some());
    assert!(!loaded(machine, "nv_peer_mem")? && loaded(machine, "nvidia_peermem")?);
    let back = machine.agent("rollback")?;
    assert_eq!(back.status, 0, "{}\n{}", back.json, back.stderr);
    assert!(loaded(machine, "nv_peer_mem")? && !loaded(machine, "nvidia_peermem")?);
    machine.ok("rmmod nv_peer_mem").map(|_| ())
}

/// No file tells of this one: it takes the attempt, and what modprobe and the kernel say about it.
fn a_taken_name_is_told(machine: &mut Machine, built: &Built) -> Result<(), Error> {
    put(machine, built, "foreign/other_peer.ko")?;
    machine.ok("depmod && modprobe other_peer")?;
    let apply = machine.agent("apply --no-reboot")?;
    assert_eq!(apply.status, 5, "{}\n{}", apply.json, apply.stderr);
    let said = format!("{}{}", apply.json, apply.stderr);
    assert!(said.contains("peermem.name-taken"), "{said}");
    assert!(said.contains("error while registering"), "{said}");
    assert!(!loaded(machine, "nvidia_peermem")?);
    machine.ok("test ! -e /etc/modules-load.d/gdr-agent.conf && rmmod other_peer")?;
    Ok(())
}

/// Last, since nothing but a reboot takes the enforcement back.
fn an_unsigned_one_under_enforcement(machine: &mut Machine, built: &Built) -> Result<(), Error> {
    install(machine, built, "core", "good")?;
    machine.ok("echo Y > /sys/module/module/parameters/sig_enforce")?;
    let plan = machine.agent("plan")?;
    let missing = &plan.json["gdr"]["missing"];
    assert_eq!(missing["id"], "peermem.unsigned", "{}", plan.json["gdr"]);
    machine.ok("dmesg --clear")?;
    let modprobe = machine.run("modprobe nvidia-peermem")?;
    assert!(
        modprobe.stderr.contains("Key was rejected by service")
            || modprobe.stderr.contains("Required key not available"),
        "{}",
        modprobe.stderr
    );
    let log = machine.ok("dmesg")?;
    assert!(
        log.contains("Loading of unsigned module is rejected"),
        "{log}"
    );
    Ok(())
}
