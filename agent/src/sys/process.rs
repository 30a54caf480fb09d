//! Running a program: fixed environment, time limit, bounded output.

use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::{EntryKind, Root, SysError, clock};

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

const MAX_OUTPUT: usize = 8 << 20;

/// Where programs are looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long a program that was killed may take to die.
const DIES: Duration = Duration::from_secs(2);

/// Runs `argv`, inside the root when that is not `/`, and returns what it said whatever its exit status.
///
/// # Errors
/// It cannot be started, or takes longer than `limit` (it is killed then).
pub fn run(root: &Root, argv: &[&str], limit: Duration) -> Result<Output, SysError> {
    let ended = start(root, argv, &[])?.wait(limit)?;
    if ended.stopped {
        return Err(SysError::Process {
            program: argv.join(" "),
            why: format!("took longer than {} s and was stopped", limit.as_secs()),
        });
    }
    Ok(ended.output)
}

/// Where a program is that [`run`] would find by this name; none where there is none.
#[must_use]
pub fn find(root: &Root, name: &str) -> Option<String> {
    let paths = PATH.split(':').map(|dir| format!("{dir}/{name}"));
    let runs = |path: &String| {
        let stat = root.stat(path).ok().flatten();
        stat.is_some_and(|s| s.kind == EntryKind::File && s.mode & 0o111 != 0)
    };
    paths.into_iter().find(runs)
}

/// How a program ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// What it said until then.
    pub output: Output,
    /// Whether it took too long and was killed.
    pub stopped: bool,
}

/// A program that runs. It is killed when this is dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    shown: String,
    began: std::time::Instant,
    stdout: Reader,
    stderr: Reader,
}

/// Starts `argv`, inside the root when that is not `/`, with `env` besides the fixed environment.
///
/// # Errors
/// It cannot be started.
pub fn start(root: &Root, argv: &[&str], env: &[(&str, &str)]) -> Result<Running, SysError> {
    let outside = root.path().to_string_lossy().into_owned();
    let mut full: Vec<&str> = Vec::new();
    if !root.is_live() {
        full.extend(["chroot", outside.as_str()]);
    }
    full.extend(argv);
    spawn(argv.join(" "), &full, env)
}

/// Starts a program of this machine, whatever the root, that is to work on: its arguments name the root themselves.
///
/// # Errors
/// It cannot be started.
pub fn start_outside(argv: &[&str], env: &[(&str, &str)]) -> Result<Running, SysError> {
    spawn(argv.join(" "), argv, env)
}

fn spawn(shown: String, argv: &[&str], env: &[(&str, &str)]) -> Result<Running, SysError> {
    let fail = |why: String| SysError::Process {
        program: shown.clone(),
        why,
    };
    let [program, rest @ ..] = argv else {
        return Err(fail("nothing to run".to_owned()));
    };
    let mut child = Command::new(program)
        .args(rest)
        .env_clear()
        .env("PATH", PATH)
        .env("LC_ALL", "C.UTF-8")
        .envs(env.iter().copied())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own group, so that its children end with it.
        .process_group(0)
        .spawn()
        .map_err(|e| fail(format!("cannot start: {e}")))?;
    let stdout = Reader::of(child.stdout.take());
    let stderr = Reader::of(child.stderr.take());
    Ok(Running {
        child,
        shown,
        began: clock::now(),
        stdout,
        stderr,
    })
}

impl Running {
    /// Waits until it ends, or kills it and its children after `limit`.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn wait(self, limit: Duration) -> Result<Ended, SysError> {
        self.wait_telling(limit, Duration::ZERO, &mut |_| {})
    }

    /// As [`Running::wait`]; after `limit` it and its children are asked to end, and after `grace` made to. `tick` is told
    /// once in a while for how long it has been running.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn wait_telling(
        mut self,
        limit: Duration,
        grace: Duration,
        tick: &mut dyn FnMut(Duration),
    ) -> Result<Ended, SysError> {
        let mut status = self.status_within(limit, tick)?;
        let stopped = status.is_none();
        if stopped && !grace.is_zero() {
            self.signal(Signal::TERM);
            status = self.status_within(grace, tick)?;
        }
        if status.is_none() {
            self.signal(Signal::KILL);
            // a program that waits for a sick device does not even die: it is left behind then
            status = self.status_within(DIES, tick)?;
        }
        // what it started may hold the pipes open for ever
        let until = clock::now() + DIES;
        Ok(Ended {
            output: Output {
                status: status.and_then(|status| status.code()),
                stdout: self.stdout.read(until),
                stderr: self.stderr.read(until),
            },
            stopped,
        })
    }

    /// Whether it has ended.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn is_over(&mut self) -> Result<bool, SysError> {
        Ok(self.status_within(Duration::ZERO, &mut |_| {})?.is_some())
    }

    fn status_within(
        &mut self,
        limit: Duration,
        tick: &mut dyn FnMut(Duration),
    ) -> Result<Option<ExitStatus>, SysError> {
        let until = clock::now() + limit;
        let mut pause = Duration::from_millis(1);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Ok(Some(status)),
                Ok(None) if clock::now() >= until => return Ok(None),
                Ok(None) => {
                    tick(clock::now().duration_since(self.began));
                    clock::sleep(pause);
                }
                Err(e) => {
                    return Err(SysError::Process {
                        program: self.shown.clone(),
                        why: format!("cannot wait for it: {e}"),
                    });
                }
            }
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// To the whole group; that some of it has ended by itself is no error. Nothing once it has been waited for: its number
    /// may be somebody else's by then.
    fn signal(&mut self, signal: Signal) {
        if matches!(self.child.try_wait(), Ok(None))
            && let Ok(pid) = i32::try_from(self.child.id())
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process_group(pid, signal);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.status_within(DIES, &mut |_| {});
    }
}

/// Reads a pipe beside the program, so that it never blocks on it.
#[derive(Debug)]
struct Reader {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Reader {
    fn of(stream: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let thread = stream.map(|stream| {
            let bytes = Arc::clone(&bytes);
            std::thread::spawn(move || read_some(stream, &bytes))
        });
        Self { bytes, thread }
    }

    /// What came until the pipe's end, or until then.
    fn read(&mut self, until: std::time::Instant) -> Vec<u8> {
        if let Some(thread) = self.thread.take() {
            let mut pause = Duration::from_micros(50);
            while !thread.is_finished() && clock::now() < until {
                clock::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
        }
        match self.bytes.lock() {
            Ok(mut bytes) => std::mem::take(&mut bytes),
            Err(_) => Vec::new(),
        }
    }
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

fn read_some(mut stream: impl Read, bytes: &Mutex<Vec<u8>>) {
    let mut piece = [0; 16 << 10];
    loop {
        let length = match stream.read(&mut piece) {
            Ok(0) => return,
            Ok(length) => length,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let Ok(mut bytes) = bytes.lock() else { return };
        // The rest is read and dropped, so that the program does not block on a full pipe.
        let room = MAX_OUTPUT.saturating_sub(bytes.len()).min(length);
        bytes.extend_from_slice(piece.get(..room).unwrap_or_default());
    }
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
    let ended = start_outside(&[program], env)?.wait(limit)?;
    if ended.stopped {
        return Err(fail(format!(
            "took longer than {} s and was stopped",
            limit.as_secs()
        )));
    }
    Ok(ended.output)
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
