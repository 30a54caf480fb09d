//! Running a program: fixed environment, time limit, bounded output.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Root, SysError, clock};

/// What a program said.
#[derive(Debug, Clone)]
pub struct Output {
    /// The exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// Standard output, at most 8 MiB of it.
    pub stdout: Vec<u8>,
    /// Standard error, at most 8 MiB of it.
    pub stderr: Vec<u8>,
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const MAX_OUTPUT: u64 = 8 << 20;

/// Runs `argv`, inside the root when that is not `/`, and returns what it said whatever its exit status.
///
/// # Errors
/// It cannot be started, or takes longer than `limit` (it is killed then).
pub fn run(root: &Root, argv: &[&str], limit: Duration) -> Result<Output, SysError> {
    let shown = argv.join(" ");
    let fail = |why: String| SysError::Process {
        program: shown.clone(),
        why,
    };
    let outside = root.path().to_string_lossy().into_owned();
    let mut full: Vec<&str> = Vec::new();
    if !root.is_live() {
        full.extend(["chroot", outside.as_str()]);
    }
    full.extend(argv);
    let [program, rest @ ..] = full.as_slice() else {
        return Err(fail("nothing to run".to_owned()));
    };
    let mut child = Command::new(program)
        .args(rest)
        .env_clear()
        .env("PATH", PATH)
        .env("LC_ALL", "C.UTF-8")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| fail(format!("cannot start: {e}")))?;
    let stdout = child
        .stdout
        .take()
        .map(|s| std::thread::spawn(move || read_some(s)));
    let stderr = child
        .stderr
        .take()
        .map(|s| std::thread::spawn(move || read_some(s)));
    let until = clock::now() + limit;
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if clock::now() >= until => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(fail(format!(
                    "took longer than {} s and was stopped",
                    limit.as_secs()
                )));
            }
            Ok(None) => clock::sleep(pause),
            Err(e) => return Err(fail(format!("cannot wait for it: {e}"))),
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    let join = |t: Option<std::thread::JoinHandle<Vec<u8>>>| {
        t.and_then(|t| t.join().ok()).unwrap_or_default()
    };
    Ok(Output {
        status: status.code(),
        stdout: join(stdout),
        stderr: join(stderr),
    })
}

/// As [`run`], and any exit status but 0 is an error with the end of what the program said.
///
/// # Errors
/// As [`run`].
pub fn run_ok(root: &Root, argv: &[&str], limit: Duration) -> Result<Output, SysError> {
    let output = run(root, argv, limit)?;
    if output.status == Some(0) {
        return Ok(output);
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let tail: Vec<&str> = text.lines().rev().take(5).collect();
    let tail: Vec<&str> = tail.into_iter().rev().collect();
    let status = output.status.map_or("ended by a signal".to_owned(), |s| {
        format!("exit status {s}")
    });
    Err(SysError::Process {
        program: argv.join(" "),
        why: format!("{status}: {}", tail.join(" | ")),
    })
}

fn read_some(stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut stream = stream;
    let _ = (&mut stream).take(MAX_OUTPUT).read_to_end(&mut bytes);
    // The rest is read and dropped, so that the program does not block on a full pipe.
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
    bytes
}

/// Runs one program of the operator's in a process group of its own, with more in its environment. When the
/// time is over, the whole group is killed; what it has left running after its end is not waited for.
///
/// # Errors
/// It cannot be started, or takes longer than `limit`.
pub fn run_group(
    root: &Root,
    program: &str,
    env: &[(&str, &str)],
    limit: Duration,
) -> Result<Output, SysError> {
    let fail = |why: String| SysError::Process {
        program: program.to_owned(),
        why,
    };
    if !root.is_live() {
        return Err(fail(
            "it belongs to a directory and not to the running system".to_owned(),
        ));
    }
    let mut child = Command::new(program)
        .env_clear()
        .env("PATH", PATH)
        .env("LC_ALL", "C.UTF-8")
        .envs(env.iter().copied())
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| fail(format!("cannot start: {e}")))?;
    let group = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    let stdout = child.stdout.take().map(read_aside);
    let stderr = child.stderr.take().map(read_aside);
    let until = clock::now() + limit;
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if clock::now() >= until => {
                if let Some(group) = group {
                    let _ =
                        rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
                }
                let _ = child.kill();
                let _ = child.wait();
                return Err(fail(format!(
                    "took longer than {} s and was stopped",
                    limit.as_secs()
                )));
            }
            Ok(None) => clock::sleep(pause),
            Err(e) => return Err(fail(format!("cannot wait for it: {e}"))),
        }
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    // Somebody in the background may hold the other end for ever.
    let said = |from: Option<std::sync::mpsc::Receiver<Vec<u8>>>| {
        from.and_then(|from| from.recv_timeout(Duration::from_secs(1)).ok())
            .unwrap_or_default()
    };
    Ok(Output {
        status: status.code(),
        stdout: said(stdout),
        stderr: said(stderr),
    })
}

fn read_aside(stream: impl Read + Send + 'static) -> std::sync::mpsc::Receiver<Vec<u8>> {
    let (to, from) = std::sync::mpsc::channel();
    std::thread::spawn(move || to.send(read_some(stream)));
    from
}

/// Resets the machine at once, after a sync: no unit is stopped, GRUB comes next.
///
/// # Errors
/// The root is not the running system, or the kernel refused.
pub fn reboot_now(root: &Root) -> Result<(), SysError> {
    if !root.is_live() {
        let why = "it is a directory and not the running system".to_owned();
        return Err(SysError::Refused {
            action: "reboot",
            path: root.path().into(),
            why,
        });
    }
    rustix::fs::sync();
    rustix::system::reboot(rustix::system::RebootCommand::Restart).map_err(|e| SysError::Process {
        program: "reboot(2)".to_owned(),
        why: e.to_string(),
    })
}
