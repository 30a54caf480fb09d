//! Running a program: fixed environment, time limit, bounded output.

use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::{Pid, Signal};

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
    /// Whether it was stopped since it took too long.
    pub late: bool,
}

const MAX_OUTPUT: usize = 8 << 20;

/// Runs `argv`, inside the root when that is not `/`, and returns what it said whatever its exit status.
///
/// # Errors
/// It cannot be started, or takes longer than `limit` (it is killed then).
pub fn run(root: &Root, argv: &[&str], limit: Duration) -> Result<Output, SysError> {
    let outside = root.path().to_string_lossy().into_owned();
    let mut full: Vec<&str> = Vec::new();
    if !root.is_live() {
        full.extend(["chroot", outside.as_str()]);
    }
    full.extend(argv);
    let job = Job {
        shown: &argv.join(" "),
        argv: &full,
        env: &[],
        limit,
        grace: Duration::ZERO,
    };
    let output = execute(&job, &mut |_| {})?;
    if output.late {
        return Err(SysError::Process {
            program: job.shown.to_owned(),
            why: format!("took longer than {} s and was stopped", limit.as_secs()),
        });
    }
    Ok(output)
}

/// A program of this machine, whatever the root, that is to work on: its arguments name the root themselves.
#[derive(Debug, Clone, Copy)]
pub struct Outside<'a> {
    /// The program and its arguments.
    pub argv: &'a [&'a str],
    /// Variables besides `PATH`, `LC_ALL` and `HOME`.
    pub env: &'a [(&'a str, &'a str)],
    /// How long it may take. Then it and its children are asked to end, and after `grace` made to.
    pub limit: Duration,
    /// See `limit`.
    pub grace: Duration,
}

/// Runs it, telling `tick` once in a while for how long it has been running. What one has said that was stopped after its
/// limit is returned, too.
///
/// # Errors
/// It cannot be started.
pub fn run_outside(job: &Outside, tick: &mut dyn FnMut(Duration)) -> Result<Output, SysError> {
    let mut env = vec![("HOME", "/root")];
    env.extend(job.env);
    let job = Job {
        shown: &job.argv.join(" "),
        argv: job.argv,
        env: &env,
        limit: job.limit,
        grace: job.grace,
    };
    execute(&job, tick)
}

struct Job<'a> {
    shown: &'a str,
    argv: &'a [&'a str],
    env: &'a [(&'a str, &'a str)],
    limit: Duration,
    grace: Duration,
}

fn execute(job: &Job, tick: &mut dyn FnMut(Duration)) -> Result<Output, SysError> {
    let fail = |why: String| SysError::Process {
        program: job.shown.to_owned(),
        why,
    };
    let [program, rest @ ..] = job.argv else {
        return Err(fail("nothing to run".to_owned()));
    };
    let mut child = Command::new(program)
        .args(rest)
        .env_clear()
        .env(
            "PATH",
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        .env("LC_ALL", "C.UTF-8")
        .envs(job.env.iter().copied())
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own group, so that its children end with it.
        .process_group(0)
        .spawn()
        .map_err(|e| fail(format!("cannot start: {e}")))?;
    let stdout = child.stdout.take().map(Reader::start);
    let stderr = child.stderr.take().map(Reader::start);
    let began = clock::now();
    let mut late = false;
    let mut pause = Duration::from_millis(1);
    let status = loop {
        let passed = clock::now() - began;
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if passed >= job.limit + job.grace => {
                late = true;
                signal(&child, Signal::KILL);
                break child
                    .wait()
                    .map_err(|e| fail(format!("cannot wait for it: {e}")))?;
            }
            Ok(None) if passed >= job.limit && !late => {
                late = true;
                signal(&child, Signal::TERM);
            }
            Ok(None) => {}
            Err(e) => return Err(fail(format!("cannot wait for it: {e}"))),
        }
        tick(passed);
        clock::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    Ok(Output {
        status: status.code(),
        stdout: stdout.map(Reader::finish).unwrap_or_default(),
        stderr: stderr.map(Reader::finish).unwrap_or_default(),
        late,
    })
}

/// To the whole group; that some of it has ended by itself is no error.
fn signal(child: &Child, signal: Signal) {
    if let Ok(pid) = i32::try_from(child.id())
        && let Some(pid) = Pid::from_raw(pid)
    {
        let _ = rustix::process::kill_process_group(pid, signal);
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

/// Reads a pipe while the program runs.
struct Reader {
    thread: std::thread::JoinHandle<()>,
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Reader {
    fn start(mut stream: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let filled = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut piece = [0; 8192];
            loop {
                let length = match stream.read(&mut piece) {
                    Ok(0) => return,
                    Ok(length) => length,
                    Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(_) => return,
                };
                // The rest is read and dropped, so that the program does not block on a full pipe.
                if let Ok(mut filled) = filled.lock() {
                    let room = MAX_OUTPUT.saturating_sub(filled.len()).min(length);
                    filled.extend_from_slice(piece.get(..room).unwrap_or_default());
                }
            }
        });
        Self { thread, bytes }
    }

    /// What was read. A daemon that the program has started may keep the pipe open for as long as it runs.
    fn finish(self) -> Vec<u8> {
        let until = clock::now() + Duration::from_secs(2);
        while !self.thread.is_finished() && clock::now() < until {
            clock::sleep(Duration::from_millis(1));
        }
        self.bytes
            .lock()
            .map(|mut bytes| std::mem::take(&mut *bytes))
            .unwrap_or_default()
    }
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
