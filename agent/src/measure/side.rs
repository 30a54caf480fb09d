//! One test: both sides of perftest in this node, or this node's side.

use std::time::{Duration, Instant};

use super::{Pair, Side};
use crate::bandwidth::{Buffer, Build, Failure, Kind, Run, Test, Wanted, stopped};
use crate::sys::process::{self, Ended};
use crate::sys::{Root, SysError, clock};

/// What it takes besides the test itself: CUDA starts, queue pairs connect.
const OVERHEAD: Duration = Duration::from_secs(30);
/// How long the waiting side may take until it listens.
const LISTENS: Duration = Duration::from_secs(20);
/// How long [`Peer::Listen`] waits for the other node.
const WAITS: Duration = Duration::from_secs(300);
const HELP: Duration = Duration::from_secs(10);

/// Where the other side is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer<'a> {
    /// In this node.
    Loopback,
    /// On this host, where it waits already.
    Host(&'a str),
    /// Elsewhere, and this is the one that waits.
    Listen,
}

/// How a test is done.
#[derive(Debug, Clone, Copy)]
pub struct How<'a> {
    /// Which direction.
    pub test: Test,
    /// The other side.
    pub peer: Peer<'a>,
    /// Message size.
    pub bytes: u64,
    /// How long, in seconds.
    pub seconds: u64,
    /// Queue pairs.
    pub qps: u32,
    /// The GID's index, where perftest's own choice does not do.
    pub gid_index: Option<u32>,
    /// The TCP port on which both sides meet.
    pub tcp_port: u16,
    /// After how long it is stopped as hung; 30 s more than it should take if none.
    pub limit: Option<Duration>,
    /// When it has to be over, whatever else.
    pub until: Option<Instant>,
}

impl How<'_> {
    fn limit(&self) -> Duration {
        let limit = self.limit;
        limit.unwrap_or(Duration::from_secs(self.seconds) + OVERHEAD)
    }
}

/// What the build of perftest can do; none where the program is not installed. `--help` ends with 1 in all versions, so only
/// its text counts.
///
/// # Errors
/// It cannot be started, or hangs.
pub fn build(root: &Root, test: Test) -> Result<Option<Build>, SysError> {
    let program = test.program();
    if process::find(root, program).is_none() {
        return Ok(None);
    }
    let output = process::run(root, &[program, "--help"], HELP)?;
    let mut text = output.stdout;
    text.extend(output.stderr);
    Ok(Some(Build::of(&text)))
}

/// A run that came to nothing, with why.
#[must_use]
pub fn failed(name: &str, kind: Kind, message: String) -> Run {
    Run {
        name: name.to_owned(),
        about: crate::bandwidth::About::default(),
        memory: crate::bandwidth::Memory::Unknown,
        rows: Vec::new(),
        failures: vec![Failure { kind, message }],
    }
}

/// The run that says that the program is not there.
#[must_use]
pub fn missing(test: Test) -> Run {
    let program = test.program();
    let message = format!("{program} is not installed");
    failed(program, Kind::Missing, message)
}

/// What a run is called.
#[must_use]
pub fn name(test: Test, pair: &Pair, buffer: Buffer) -> String {
    let (program, device) = (test.program(), &pair.nic.device);
    match buffer {
        Buffer::Host => format!("{program} {device} host memory"),
        Buffer::Gpu { bdf, .. } => format!("{program} {device} GPU {bdf}"),
    }
}

/// Runs one test; whatever perftest says, and that it had to be stopped, is in the run.
///
/// # Errors
/// It cannot be started, or not be waited for.
pub fn run(
    root: &Root,
    how: &How<'_>,
    pair: &Pair,
    buffer: Buffer,
    build: Build,
) -> Result<Run, SysError> {
    let name = name(how.test, pair, buffer);
    let wanted = |side: &Side, peer: Option<&str>| {
        let wanted = Wanted {
            test: how.test,
            device: &side.device,
            port: side.port,
            buffer,
            bytes: how.bytes,
            seconds: how.seconds,
            qps: how.qps,
            gid_index: how.gid_index,
            tcp_port: how.tcp_port,
            peer,
        };
        wanted.argv(build)
    };
    let peer = match how.peer {
        Peer::Loopback => Some("127.0.0.1"),
        Peer::Host(host) => Some(host),
        Peer::Listen => None,
    };
    let other = pair.peer.as_ref().unwrap_or(&pair.nic);
    let (own, waits) = match (wanted(&pair.nic, peer), wanted(other, None)) {
        (Ok(own), Ok(waits)) => (own, waits),
        (Err(Failure { kind, message }), _) | (_, Err(Failure { kind, message })) => {
            return Ok(failed(&name, kind, message));
        }
    };
    let mut limit = Limit::of(how);
    let ended = match how.peer {
        Peer::Listen => {
            limit.each += WAITS;
            limit.end += WAITS;
            start(root, &own)?.wait(limit.now())?
        }
        Peer::Loopback => both(root, &waits, &own, limit)?,
        Peer::Host(_) => asked(root, &own, limit, None)?,
    };
    let mut run = read(&name, &ended, limit.each, buffer);
    if how.peer == Peer::Listen && ended.output.status == Some(0) {
        // the waiting side of a read prints no row
        run.failures
            .retain(|failure| failure.kind != Kind::NoResult);
    }
    Ok(run)
}

/// How long a program may take, and when everything has to be over.
#[derive(Debug, Clone, Copy)]
struct Limit {
    each: Duration,
    end: Instant,
}

impl Limit {
    fn of(how: &How<'_>) -> Self {
        let now = clock::now();
        let mut each = how.limit();
        let mut end = now + LISTENS + each;
        if let Some(until) = how.until {
            end = end.min(until);
            each = each.min(until.saturating_duration_since(now));
        }
        Self { each, end }
    }

    fn now(&self) -> Duration {
        self.each
            .min(self.end.saturating_duration_since(clock::now()))
    }
}

fn start(root: &Root, argv: &[String]) -> Result<process::Running, SysError> {
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    process::start(root, &argv, &[("CUDA_DEVICE_ORDER", "PCI_BUS_ID")])
}

/// Both sides in this node. What the waiting side says counts where it ends first, since then it tells why.
fn both(root: &Root, waits: &[String], asks: &[String], limit: Limit) -> Result<Ended, SysError> {
    let mut server = start(root, waits)?;
    let mut ended = asked(root, asks, limit, Some(&mut server))?;
    let rows = !Run::read("", &ended.output.stdout).rows.is_empty();
    if rows || ended.stopped {
        return Ok(ended);
    }
    let served = server.wait(Duration::from_secs(2))?;
    if !served.stopped {
        let mut stdout = served.output.stdout;
        stdout.push(b'\n');
        stdout.extend(served.output.stderr);
        stdout.push(b'\n');
        stdout.extend(std::mem::take(&mut ended.output.stdout));
        ended.output.stdout = stdout;
    }
    Ok(ended)
}

/// The asking side, again until the other side listens: perftest itself tries once. It does not tell when it listens,
/// since its output is held back where that is no terminal.
fn asked(
    root: &Root,
    asks: &[String],
    limit: Limit,
    mut server: Option<&mut process::Running>,
) -> Result<Ended, SysError> {
    let until = (clock::now() + LISTENS).min(limit.end);
    clock::sleep(Duration::from_millis(300));
    loop {
        let ended = start(root, asks)?.wait(limit.now())?;
        let output = Run::read("", &said(&ended));
        let refused = output.rows.is_empty()
            && output.failures.iter().map(|f| f.kind).min() == Some(Kind::Connection);
        let gone = match &mut server {
            Some(server) => server.is_over()?,
            None => false,
        };
        if ended.stopped || !refused || gone || clock::now() >= until {
            return Ok(ended);
        }
        clock::sleep(Duration::from_millis(500));
    }
}

fn said(ended: &Ended) -> Vec<u8> {
    let mut said = ended.output.stdout.clone();
    said.push(b'\n');
    said.extend(&ended.output.stderr);
    said
}

fn read(name: &str, ended: &Ended, limit: Duration, buffer: Buffer) -> Run {
    let mut run = Run::read(name, &said(ended));
    if ended.stopped {
        run.failures.retain(|f| f.kind != Kind::NoResult);
        run.failures.push(stopped(limit.as_secs()));
    } else if ended.output.status != Some(0) && run.failures.is_empty() {
        let status = ended.output.status;
        let how = status.map_or("a signal ended it".to_owned(), |s| {
            format!("exit status {s}")
        });
        run.failures.push(Failure {
            kind: Kind::Other,
            message: how,
        });
    }
    if let (Buffer::Gpu { bdf, .. }, Some(gpu)) = (buffer, &run.about.gpu)
        && *gpu != format!("{:02X}:{:02X}", bdf.bus, bdf.device)
    {
        let message = format!("CUDA took the GPU at {gpu}, and {bdf} was asked for");
        run.failures.push(Failure {
            kind: Kind::OtherGpu,
            message,
        });
    }
    run
}
