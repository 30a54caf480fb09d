//! Gates and the operator's programs: each alone, and in which order a policy has them asked.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

mod http_support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gdr_agent::reboot::{Hooks, Kind, Request, asked_apart, choose};
use gdr_agent::sys::Root;
use gdr_policy::{Policy, Source};
use http_support::{Reply, Server, Tls};

fn policy(text: &str) -> Policy {
    let source = Source {
        name: "policy.toml".to_owned(),
        text: format!("version = 1\n{text}\n").into_bytes(),
    };
    gdr_policy::load(&[source]).unwrap().policy
}

fn request(back: bool) -> Request {
    Request {
        reason: "trial".to_owned(),
        respect_inhibitors: true,
        back,
    }
}

/// A root with the files that a node without GPUs at work has.
fn idle() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for path in [
        "proc/1/fd",
        "proc/sys",
        "sys/module/nvidia_uvm/holders",
        "etc/gdr-agent",
    ] {
        std::fs::create_dir_all(dir.path().join(path)).unwrap();
    }
    put(dir.path(), "sys/module/nvidia_uvm/refcnt", "0\n");
    put(
        dir.path(),
        "etc/machine-id",
        "0123456789abcdef0123456789abcdef\n",
    );
    symlink("/dev/null", dir.path().join("proc/1/fd/0")).unwrap();
    // What looks after a GPU does not compute on it.
    symlink("/dev/nvidia0", dir.path().join("proc/1/fd/1")).unwrap();
    symlink("/dev/nvidiactl", dir.path().join("proc/1/fd/2")).unwrap();
    dir
}

fn put(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Every question of a policy, as `who`, with what the gate says.
fn asked(dir: &Path, policy: &Policy, back: bool) -> Vec<(String, Option<Option<String>>)> {
    let root = Root::open(dir).unwrap();
    let chosen = choose(&root, policy).unwrap();
    let questions = chosen.questions(&request(back), true);
    questions.into_iter().map(|q| (q.who, q.no)).collect()
}

fn gate(dir: &Path, policy: &Policy, name: &str, back: bool) -> Option<String> {
    let mut found = asked(dir, policy, back)
        .into_iter()
        .filter(|(who, _)| who == name);
    found.next().unwrap().1.unwrap()
}

const FLEET: &str =
    "[reboot]\ncoordinator = \"fleetlock\"\n[reboot.fleetlock]\nurl = \"http://127.0.0.1:9/\"\n";

#[test]
fn what_costs_nothing_is_asked_first_and_programs_only_under_a_slot() {
    let dir = idle();
    let who = |policy: &Policy| -> Vec<String> {
        asked(dir.path(), policy, false)
            .into_iter()
            .map(|(who, _)| who)
            .collect()
    };
    assert_eq!(who(&policy("")), ["stop-file", "gpu", "logind"]);
    let root = Root::open(dir.path()).unwrap();
    assert!(!asked_apart(&root, &policy("")) && asked_apart(&root, &policy(FLEET)));
    let all = format!(
        "{FLEET}[reboot.gates]\nwindows = [\"00:00-24:00\"]\nstop_url = \"http://127.0.0.1:9/\"\n"
    );
    assert_eq!(
        who(&policy(&all)),
        [
            "stop-file",
            "stop-url",
            "window",
            "gpu",
            "fleetlock",
            "logind"
        ]
    );
    put(
        dir.path(),
        "etc/gdr-agent/pre-reboot.d/10-drain",
        "#!/bin/sh\n",
    );
    assert_eq!(
        who(&policy(&all)),
        [
            "stop-file",
            "stop-url",
            "window",
            "fleetlock",
            "pre-reboot.d",
            "gpu",
            "logind"
        ]
    );
    assert!(asked_apart(&root, &policy("")), "programs may need one");
    assert_eq!(
        who(&policy("[reboot.gates]\ngpu = \"ignore\"\n")),
        ["stop-file", "pre-reboot.d", "logind"]
    );
    // Neither a slot nor programs are tried in a dry run.
    let not_asked: Vec<String> = asked(dir.path(), &policy(&all), false)
        .into_iter()
        .filter(|(_, no)| no.is_none())
        .map(|(who, _)| who)
        .collect();
    assert_eq!(not_asked, ["fleetlock", "pre-reboot.d"]);
}

#[test]
fn a_closed_gate_is_a_refusal_of_its_own_kind_and_nobody_else_is_asked() {
    let dir = idle();
    put(
        dir.path(),
        "etc/gdr-agent/stop",
        "storage is being moved\nmore\n",
    );
    let root = Root::open(dir.path()).unwrap();
    for back in [false, true] {
        let refusal = choose(&root, &policy(FLEET))
            .unwrap()
            .request(&request(back), &mut || panic!("granted under a stop file"))
            .unwrap_err();
        assert_eq!(refusal.kind(), Kind::Gate);
        let text = refusal.to_string();
        assert!(
            text.contains("stop-file") && text.contains("storage is being moved"),
            "{text}"
        );
    }
}

/// While a granted reboot is only scheduled: what would harm somebody, and nothing that takes a network.
#[test]
fn a_stop_file_and_a_busy_gpu_object_to_a_reboot_that_is_scheduled() {
    let dir = idle();
    let root = Root::open(dir.path()).unwrap();
    let all = format!(
        "{FLEET}[reboot.gates]\nwindows = [\"00:00-00:01\"]\nstop_url = \"http://127.0.0.1:9/\"\n"
    );
    let objection = |back: bool| {
        let chosen = choose(&root, &policy(&all)).unwrap();
        chosen.objection(back).err().map(|no| no.to_string())
    };
    assert_eq!(objection(false), None);
    put(dir.path(), "sys/module/nvidia_uvm/refcnt", "1\n");
    assert!(objection(false).unwrap().contains("gpu"));
    // Behind programs, the GPU is looked at after the slot.
    put(
        dir.path(),
        "etc/gdr-agent/pre-reboot.d/10-drain",
        "#!/bin/sh\n",
    );
    assert!(objection(false).unwrap().contains("gpu"));
    put(dir.path(), "sys/module/nvidia_uvm/refcnt", "0\n");
    put(dir.path(), "etc/gdr-agent/stop", "moving racks\n");
    assert!(objection(false).unwrap().contains("moving racks"));
}

#[test]
fn a_process_that_computes_closes_the_gpu_gate() {
    let plain = policy("");
    let says = |dir: &tempfile::TempDir| gate(dir.path(), &plain, "gpu", false);
    assert_eq!(says(&idle()), None);

    let dir = idle();
    put(dir.path(), "proc/4711/comm", "python3\n");
    std::fs::create_dir_all(dir.path().join("proc/4711/fd")).unwrap();
    symlink("/dev/nvidia-uvm", dir.path().join("proc/4711/fd/9")).unwrap();
    assert!(says(&dir).unwrap().contains("process 4711 (python3)"));
    let back = gate(dir.path(), &policy(""), "gpu", true);
    assert!(back.is_some(), "on the way back, too");

    // In a container that this process cannot look into, the module's count tells.
    let dir = idle();
    put(dir.path(), "sys/module/nvidia_uvm/refcnt", "2\n");
    assert!(says(&dir).unwrap().contains("2 files"));
    put(dir.path(), "sys/module/nvidia_uvm/holders/nvidia_x/x", "");
    assert!(says(&dir).unwrap().contains("1 files"));

    // ROCm.
    let dir = idle();
    put(dir.path(), "sys/class/kfd/kfd/proc/88/pasid", "1");
    assert!(says(&dir).unwrap().contains("process 88"));

    // No NVIDIA driver at all.
    let dir = idle();
    std::fs::remove_dir_all(dir.path().join("sys/module")).unwrap();
    assert_eq!(says(&dir), None);
}

#[test]
fn what_cannot_be_known_of_a_gpu_is_busy_with_a_reason() {
    let plain = policy("");
    let dir = idle();
    put(dir.path(), "sys/module/nvidia_uvm/refcnt", "many\n");
    let says = gate(dir.path(), &plain, "gpu", false).unwrap();
    assert!(
        says.contains("not known") && says.contains("many"),
        "{says}"
    );
    // A directory that is a file cannot be listed, whoever asks.
    let dir = idle();
    std::fs::remove_file(dir.path().join("sys/module/nvidia_uvm/refcnt")).unwrap();
    put(dir.path(), "proc/77/fd", "");
    put(dir.path(), "proc/77/comm", "secret\n");
    let says = gate(dir.path(), &plain, "gpu", false).unwrap();
    assert!(says.contains("not known") && says.contains("77"), "{says}");
    // Of a module that is not loaded no file is open, whoever cannot be looked into.
    std::fs::remove_dir_all(dir.path().join("sys/module/nvidia_uvm")).unwrap();
    assert_eq!(gate(dir.path(), &plain, "gpu", false), None);
    std::fs::remove_dir_all(dir.path().join("sys/module")).unwrap();
    assert!(gate(dir.path(), &plain, "gpu", false).is_some(), "no sysfs");

    // In a unit with ProtectProc=invisible what cannot be looked into is not even listed.
    let dir = idle();
    std::fs::remove_file(dir.path().join("sys/module/nvidia_uvm/refcnt")).unwrap();
    std::fs::remove_dir_all(dir.path().join("proc/1")).unwrap();
    let says = gate(dir.path(), &plain, "gpu", false).unwrap();
    assert!(
        says.contains("not known") && says.contains("does not show"),
        "{says}"
    );
}

#[test]
fn a_stop_url_is_open_only_when_it_is_known_to_be_gone() {
    for (status, body, open, says) in [
        (404, "", true, ""),
        (410, "", true, ""),
        (200, "moving racks\n", false, "moving racks"),
        (500, "", false, "not known"),
        (302, "", false, "not known"),
        (403, "", false, "not known"),
    ] {
        let server = Server::start(Tls::None, move |_| Reply::status(status, body));
        let policy = policy(&format!(
            "[reboot.gates]\nstop_url = \"{}\"\n",
            server.url("/stop")
        ));
        let found = gate(idle().path(), &policy, "stop-url", false);
        assert_eq!(found.is_none(), open, "{status}: {found:?}");
        assert!(found.unwrap_or_default().contains(says), "{status}");
        assert_eq!(server.seen()[0].line, "GET /stop HTTP/1.1");
    }
    let policy = policy("[reboot.gates]\nstop_url = \"http://127.0.0.1:9/stop\"\n");
    assert!(
        gate(idle().path(), &policy, "stop-url", false)
            .unwrap()
            .contains("not known")
    );
}

#[test]
fn a_window_holds_the_trial_and_not_the_way_back() {
    let dir = idle();
    let never = {
        // A window of a minute that was over two hours ago, or begins in twenty.
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs();
        let minute = (now / 60 + 22 * 60) % 1440;
        let end = (minute + 1) % 1440;
        format!(
            "[reboot.gates]\nwindows = [\"{:02}:{:02}-{:02}:{:02}\"]\n",
            minute / 60,
            minute % 60,
            end / 60,
            end % 60
        )
    };
    let closed = gate(dir.path(), &policy(&never), "window", false).unwrap();
    assert!(closed.contains("UTC"), "{closed}");
    assert_eq!(gate(dir.path(), &policy(&never), "window", true), None);
    let always = policy("[reboot.gates]\nwindows = [\"00:00-24:00\"]\ntime_zone = \"-05:00\"\n");
    assert_eq!(gate(dir.path(), &always, "window", false), None);
}

/// A directory for programs that nobody else may write to: temporary directories are everybody's.
struct Programs {
    dir: PathBuf,
}

impl Programs {
    fn new(name: &str) -> Self {
        let dir =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir }
    }

    fn add(&self, name: &str, mode: u32, text: &str) -> &Self {
        let path = self.dir.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    fn run(&self, limit: Duration) -> Result<(), String> {
        let root = Root::open(Path::new("/")).unwrap();
        Hooks::new(root, self.dir.to_str().unwrap(), limit).run(false)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join(".log")).unwrap_or_default()
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

const LIMIT: Duration = Duration::from_secs(20);

#[test]
fn programs_run_in_order_until_one_says_no() {
    let programs = Programs::new("order");
    let log = |what: &str| {
        format!("#!/bin/sh\necho {what} $GDR_AGENT_REBOOT $HOME >> \"${{0%/*}}/.log\"\n")
    };
    programs
        .add("20-second", 0o755, &log("second"))
        .add("10-first", 0o700, &log("first"))
        .add("15-old.rpmsave", 0o755, &log("left over"))
        .add(".hidden", 0o755, &log("hidden"));
    programs.run(LIMIT).unwrap();
    assert_eq!(programs.log(), "first trial\nsecond trial\n");
    programs.add(
        "12-jobs",
        0o755,
        "#!/bin/sh\necho noise\necho 'job 17 runs' >&2\nexit 3\n",
    );
    let error = programs.run(LIMIT).unwrap_err();
    assert!(
        error.contains("12-jobs")
            && error.contains("exit status 3")
            && error.contains("job 17 runs"),
        "{error}"
    );
    assert_eq!(programs.log(), "first trial\nsecond trial\nfirst trial\n");
}

#[test]
fn programs_that_somebody_else_could_change_are_not_run() {
    for (mode, says) in [
        (0o775, "others may write it"),
        (0o757, "others may write it"),
        (0o644, "not executable"),
    ] {
        let programs = Programs::new(&format!("mode{mode:o}"));
        programs.add("10-x", mode, "#!/bin/sh\necho ran >> \"${0%/*}/.log\"\n");
        let error = programs.run(LIMIT).unwrap_err();
        assert!(error.contains("10-x") && error.contains(says), "{error}");
        assert_eq!(programs.log(), "");
    }
    let programs = Programs::new("dir");
    programs.add("10-x", 0o755, "#!/bin/sh\necho ran >> \"${0%/*}/.log\"\n");
    std::fs::set_permissions(&programs.dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(
        programs
            .run(LIMIT)
            .unwrap_err()
            .contains("writable by others")
    );
    assert_eq!(programs.log(), "");
    let programs = Programs::new("link");
    symlink("/nonexistent", programs.dir.join("10-x")).unwrap();
    assert!(programs.run(LIMIT).is_err());
}

#[test]
fn a_program_that_hangs_is_ended_with_its_children() {
    let programs = Programs::new("hang");
    let text = "#!/bin/sh\nsleep 60 &\necho $! > \"${0%/*}/.log\"\nsleep 60\n";
    programs.add("10-x", 0o755, text);
    let begin = Instant::now();
    let error = programs.run(Duration::from_secs(1)).unwrap_err();
    assert!(error.contains("longer than 1 s"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(20));
    let child = programs.log().trim().to_owned();
    let gone = || {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.is_empty() || stat.contains(" Z ")
    };
    let until = Instant::now() + Duration::from_secs(10);
    while !gone() {
        assert!(Instant::now() < until, "the child {child} lives on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_a_program_leaves_in_the_background_is_not_waited_for() {
    let programs = Programs::new("background");
    programs.add("10-x", 0o755, "#!/bin/sh\nsleep 30 &\nexit 0\n");
    let begin = Instant::now();
    programs.run(LIMIT).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_directory_that_is_not_there_asks_nothing() {
    let root = Root::open(Path::new("/")).unwrap();
    Hooks::new(root, "/nonexistent/pre-reboot.d", LIMIT)
        .run(false)
        .unwrap();
}
