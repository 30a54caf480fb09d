//! Modules that a real kernel build made: what is read from their files is what modinfo and modprobe say, and
//! each is called by its name.
//!
//! It takes the headers of some kernel (`linux-headers-*`) and kmod; in CI both have to be there.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test looks at the machine from outside"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use gdr_tests::kmod::{Built, Headers};
use serde_json::Value;
use support::Node;

/// Says loudly that nothing was tested, or fails where something has to be.
fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "{why}");
    println!("SKIPPED: {why}");
}

fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program)
        .args(args)
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}"))
}

fn ok(program: &str, args: &[&str]) -> String {
    let output = run(program, args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{program} {args:?}: {said}{}",
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn built() -> Option<(&'static Headers, &'static Built)> {
    static HEADERS: OnceLock<Option<Headers>> = OnceLock::new();
    static BUILT: OnceLock<Built> = OnceLock::new();
    let Some(headers) = HEADERS.get_or_init(Headers::newest) else {
        skip("no kernel headers or no kmod here: apt-get install linux-headers-amd64 kmod");
        return None;
    };
    let built = BUILT.get_or_init(|| Built::new(headers).unwrap_or_else(|e| panic!("{e}")));
    Some((headers, built))
}

fn read(built: &Built, file: &str) -> Vec<u8> {
    let path = built.path(file);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A root with one kernel and these modules, by their paths below its directory; depmod has been there.
fn node(release: &str, modules: &[(&str, &[u8])]) -> (tempfile::TempDir, Node) {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, bytes: &[u8]| {
        let at = dir.path().join(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, bytes).unwrap();
    };
    put(&format!("boot/vmlinuz-{release}"), b"");
    put(
        "etc/gdr-agent/policy.toml",
        b"version = 1\n[gdr]\npath = \"peermem\"\n",
    );
    for (path, bytes) in modules {
        put(&format!("lib/modules/{release}/{path}"), bytes);
    }
    for name in ["modules.order", "modules.builtin"] {
        put(&format!("lib/modules/{release}/{name}"), b"");
    }
    ok("depmod", &["-b", dir.path().to_str().unwrap(), release]);
    let node = Node::at(dir.path().to_path_buf());
    (dir, node)
}

fn gdr(node: &Node) -> Value {
    let output = node.run(&["--format", "json", "plan"]);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        panic!("{e}: {}", String::from_utf8_lossy(&output.stderr));
    });
    plan["gdr"].clone()
}

fn target(node: &Node) -> Value {
    node.json(&["facts"], 0)["facts"]["gdr"]["targets"][0].clone()
}

const CORE: &str = "kernel/drivers/infiniband/core/ib_core.ko";
const PEERMEM: &str = "updates/dkms/nvidia-peermem.ko";

#[test]
fn each_build_is_called_by_its_name() {
    let Some((headers, built)) = built() else {
        return;
    };
    let core = read(built, "core/ib_core.ko");
    let bare = read(built, "core-no-peers/ib_core.ko");
    for (core, module, expected) in [
        (&core, "good/nvidia-peermem.ko", None),
        (&core, "stub/nvidia-peermem.ko", Some("peermem.stub")),
        (
            &core,
            "magic/nvidia-peermem.ko",
            Some("peermem.wrong-kernel"),
        ),
        (
            &core,
            "other/nvidia-peermem.ko",
            Some("peermem.abi-mismatch"),
        ),
        (&bare, "good/nvidia-peermem.ko", Some("peermem.no-api")),
        (&bare, "stub/nvidia-peermem.ko", Some("peermem.stub")),
    ] {
        let (_dir, node) = node(
            &headers.release,
            &[(CORE, core), (PEERMEM, &read(built, module))],
        );
        let gdr = gdr(&node);
        let path = if expected.is_none() {
            "peermem"
        } else {
            "none"
        };
        assert_eq!(gdr["path"], path, "{module}: {gdr:#}");
        assert_eq!(gdr["missing"]["id"].as_str(), expected, "{module}: {gdr:#}");
        assert_ne!(gdr["missing"]["unknown"], true, "{module}: {gdr:#}");
    }
}

/// `symbol -> version` as `modprobe --dump-modversions` prints it.
fn versions(path: &Path) -> Vec<(String, u64)> {
    let text = ok("modprobe", &["--dump-modversions", path.to_str().unwrap()]);
    let line = |line: &str| {
        let (crc, symbol) = line.split_once('\t').unwrap();
        let crc = u64::from_str_radix(crc.trim().trim_start_matches("0x"), 16).unwrap();
        (symbol.trim().to_owned(), crc)
    };
    text.lines().map(line).collect()
}

#[test]
fn what_is_read_is_what_modinfo_and_modprobe_read() {
    let Some((headers, built)) = built() else {
        return;
    };
    let core = read(built, "core/ib_core.ko");
    for name in ["good", "stub", "other"] {
        let module = read(built, &format!("{name}/nvidia-peermem.ko"));
        let (dir, node) = node(&headers.release, &[(CORE, &core), (PEERMEM, &module)]);
        let file = dir
            .path()
            .join(format!("lib/modules/{}/{PEERMEM}", headers.release));
        let target = target(&node);
        let ours = &target["peermem"]["value"];
        let field = |field: &str| {
            ok("modinfo", &["-F", field, file.to_str().unwrap()])
                .trim()
                .to_owned()
        };
        assert_eq!(ours["version"], field("version"));
        assert_eq!(ours["vermagic"], field("vermagic"));
        let theirs = versions(&file);
        let theirs = theirs
            .iter()
            .find(|(name, _)| name == "ib_register_peer_memory_client");
        assert_eq!(
            ours["register_crc"].as_u64(),
            theirs.map(|(_, crc)| *crc),
            "{name}"
        );
        assert_eq!(ours["registers"], name != "stub");
        // Both were built for one kernel: every version that they share is the same.
        assert_eq!(ours["differs"], serde_json::json!([]));

        // The core's own version of the interface, as its build wrote it down.
        let symvers = String::from_utf8(read(built, "core/Module.symvers")).unwrap();
        let line = symvers
            .lines()
            .find(|l| l.contains("\tib_register_peer_memory_client\t"))
            .unwrap();
        let crc = line.split('\t').next().unwrap().trim_start_matches("0x");
        let rdma = &target["rdma"]["value"];
        assert_eq!(rdma["register_crc"], u64::from_str_radix(crc, 16).unwrap());
        assert_eq!(rdma["peer_memory"], true);
        let srcversion = ok(
            "modinfo",
            &[
                "-F",
                "srcversion",
                dir.path()
                    .join(format!("lib/modules/{}/{CORE}", headers.release))
                    .to_str()
                    .unwrap(),
            ],
        );
        assert_eq!(
            rdma["srcversion"].as_str().unwrap_or_default(),
            srcversion.trim()
        );
    }
}

#[test]
fn modprobe_takes_the_same_file() {
    let Some((headers, built)) = built() else {
        return;
    };
    let core = read(built, "core/ib_core.ko");
    let good = read(built, "good/nvidia-peermem.ko");
    let debian = "install nvidia-peermem modprobe ib_core ; modprobe -i nvidia-current-peermem $CMDLINE_OPTS\n";
    let alias = "alias nvidia-peermem nvidia-renamed\n";
    for (files, config, inserted) in [
        (&[PEERMEM][..], "", Some(PEERMEM)),
        (&["extra/nvidia-peermem.ko", PEERMEM], "", None),
        (
            &["updates/dkms/nvidia-current-peermem.ko"],
            debian,
            Some("updates/dkms/nvidia-current-peermem.ko"),
        ),
        (
            &["updates/nvidia_renamed.ko"],
            alias,
            Some("updates/nvidia_renamed.ko"),
        ),
        (
            &["updates/nvidia_renamed.ko", PEERMEM],
            alias,
            Some("updates/nvidia_renamed.ko"),
        ),
        (&[], "", None),
    ] {
        let mut modules: Vec<(&str, &[u8])> = vec![(CORE, &core)];
        modules.extend(files.iter().map(|file| (*file, good.as_slice())));
        let (dir, node) = node(&headers.release, &modules);
        let conf = dir.path().join("etc/modprobe.d");
        std::fs::create_dir_all(&conf).unwrap();
        std::fs::write(conf.join("nvidia.conf"), config).unwrap();
        let theirs = |name: &str| {
            let output = run(
                "modprobe",
                &[
                    "-n",
                    "-v",
                    "--show-depends",
                    "-S",
                    &headers.release,
                    "-d",
                    dir.path().to_str().unwrap(),
                    "-C",
                    conf.to_str().unwrap(),
                    name,
                ],
            );
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let target = target(&node);
        let ours = target["peermem"]["value"]["path"]
            .as_str()
            .map(str::to_owned);
        let said = theirs("nvidia-peermem");
        let last = said.lines().last().unwrap_or_default().trim().to_owned();
        // For an `install` line modprobe prints the command; the module that it inserts is asked for again.
        let last = if last.starts_with("install ") {
            theirs("nvidia-current-peermem")
                .lines()
                .last()
                .unwrap()
                .trim()
                .to_owned()
        } else {
            last
        };
        let inserts = last.strip_prefix("insmod ").map(|path| {
            let root = dir.path().to_str().unwrap();
            path.trim().strip_prefix(root).unwrap_or(path).to_owned()
        });
        assert_eq!(ours, inserts, "{files:?} {config} {said}");
        if let Some(inserted) = inserted {
            let whole = format!("/lib/modules/{}/{inserted}", headers.release);
            assert_eq!(ours.as_deref(), Some(whole.as_str()));
        }
    }
}

#[test]
fn a_signature_by_the_kernels_own_tool() {
    let Some((headers, built)) = built() else {
        return;
    };
    let tool = headers.build.join("scripts/sign-file");
    if !tool.exists() || Command::new("openssl").arg("version").output().is_err() {
        skip("no sign-file or no openssl here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    ok(
        "openssl",
        &[
            "req",
            "-new",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/O=Sample/CN=Sample module key/",
            "-keyout",
            &at("key"),
            "-out",
            &at("cert"),
        ],
    );
    std::fs::write(at("m.ko"), read(built, "good/nvidia-peermem.ko")).unwrap();
    ok(
        tool.to_str().unwrap(),
        &["sha512", &at("key"), &at("cert"), &at("m.ko")],
    );
    let signed = std::fs::read(at("m.ko")).unwrap();
    let core = read(built, "core/ib_core.ko");
    let (_root, node) = node(&headers.release, &[(CORE, &core), (PEERMEM, &signed)]);
    let signature = target(&node)["peermem"]["value"]["signature"].clone();
    let field = |field: &str| ok("modinfo", &["-F", field, &at("m.ko")]).trim().to_owned();
    assert_eq!(signature["signer"], "Sample module key");
    assert_eq!(signature["signer"], field("signer"));
    assert_eq!(signature["hash"], field("sig_hashalgo"));
    let serial: String = field("sig_key")
        .split(':')
        .collect::<String>()
        .to_lowercase();
    // DER puts a zero before a number whose first bit is set.
    let ours = signature["serial"]
        .as_str()
        .unwrap()
        .trim_start_matches("00")
        .to_owned();
    assert_eq!(ours, serial.trim_start_matches("00"));
    let unsigned = target(
        &self::node(
            &headers.release,
            &[(PEERMEM, &read(built, "good/nvidia-peermem.ko"))],
        )
        .1,
    );
    assert_eq!(unsigned["peermem"]["value"]["signature"], Value::Null);
}

/// NVIDIA's own module, built where the RDMA core has no peer-memory interface.
#[test]
fn nvidias_own_module_is_a_stub_on_debian() {
    let Some((headers, built)) = built() else {
        return;
    };
    let Some(source) = nvidia_source() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let src = dir.path().join("src");
    ok(
        "cp",
        &["-r", source.to_str().unwrap(), src.to_str().unwrap()],
    );
    let m = format!("M={}", src.display());
    let build = headers.build.to_str().unwrap();
    let common = headers.build.parent().unwrap().join("source");
    let common = if common.exists() {
        common
    } else {
        headers.build.clone()
    };
    let sources = format!("NV_KERNEL_SOURCES={}", common.display());
    let output = format!("NV_KERNEL_OUTPUT={build}");
    ok(
        "make",
        &[
            "-C",
            build,
            &m,
            &sources,
            &output,
            "NV_KERNEL_MODULES=nvidia-peermem",
            "KBUILD_MODPOST_WARN=1",
            "modules",
        ],
    );
    let module = std::fs::read(src.join("nvidia-peermem.ko")).unwrap();
    // Even where the RDMA core has the interface by now: it was not there when the module was built.
    let core = read(built, "core/ib_core.ko");
    let (_root, node) = node(&headers.release, &[(CORE, &core), (PEERMEM, &module)]);
    let gdr = gdr(&node);
    assert_eq!(gdr["missing"]["id"], "peermem.stub", "{gdr:#}");
    assert_eq!(gdr["missing"]["unknown"], false);
    let file = target(&node)["peermem"]["value"].clone();
    let name = source.file_name().unwrap().to_str().unwrap();
    let version = name.rsplit('-').next().unwrap();
    assert_eq!(file["version"], version);
    assert_eq!(file["registers"], false);
    assert_eq!(file["differs"], serde_json::json!([]));
}

/// `GDR_NVIDIA_SOURCE`, or what `scripts/nvidia-source` left beside the test program.
fn nvidia_source() -> Option<PathBuf> {
    let base = match std::env::var_os("GDR_NVIDIA_SOURCE") {
        Some(path) => PathBuf::from(path),
        None => {
            let me = std::env::current_exe().unwrap();
            me.ancestors().nth(3).unwrap().join("nvidia-source")
        }
    };
    let found = std::fs::read_dir(base.join("usr/src"))
        .ok()
        .and_then(|entries| {
            let mut all = entries.flatten().map(|entry| entry.path());
            all.find(|path| path.join("nvidia-peermem/nvidia-peermem.c").exists())
        });
    if found.is_none() {
        skip("no source of NVIDIA's modules here: scripts/nvidia-source target/nvidia-source");
    }
    found
}
