//! Running perftest: both sides in this node, or this node's side.

use std::time::Duration;

use gdr_policy::Policy;

use super::pair::{Pair, Side, pair};
use super::{Args, Ceiling};
use crate::bandwidth::{Buffer, Build, Failure, Kind, Run, Wanted, stopped};
use crate::cli::{CliError, Context, Exit};
use crate::sys::process::{self, Ended};
use crate::sys::{SysError, clock};

/// What it takes besides the test itself: CUDA starts, queue pairs connect.
const OVERHEAD: Duration = Duration::from_secs(30);
/// How long the waiting side may take until it listens.
const LISTENS: Duration = Duration::from_secs(20);
/// How long `--listen` waits for the other node.
const WAITS: Duration = Duration::from_secs(300);
const HELP: Duration = Duration::from_secs(10);

/// The runs, and what the link can carry.
pub(super) fn measure(
    context: &Context,
    args: &Args,
    policy: &Policy,
) -> Result<(Vec<Run>, Option<Ceiling>), CliError> {
    let program = args.test.program();
    if process::find(&context.root, program).is_none() {
        return Ok((vec![missing(program)], None));
    }
    let pair = pair(context, args, policy)?;
    let build = build(context, program)?;
    let mut runs = Vec::new();
    let mut buffers = vec![Buffer::Host];
    // the way that the policy wants: nvidia-peermem only where it says so or the build has nothing else
    let peermem = policy.gdr.path == gdr_policy::GdrPath::Peermem || !build.dma_buf;
    buffers.push(Buffer::Gpu {
        bdf: pair.gpu,
        number: pair.number,
        dma_buf: !peermem,
    });
    for (at, buffer) in (0..).zip(buffers) {
        let name = match buffer {
            Buffer::Host => format!("{program} {} host memory", pair.nic.device),
            Buffer::Gpu { bdf, .. } => format!("{program} {} GPU {bdf}", pair.nic.device),
        };
        context
            .out
            .progress(&format!("{name}, {} s ...", args.seconds));
        let wanted = Wanted {
            test: args.test,
            device: &pair.nic.device,
            port: pair.nic.port,
            buffer,
            bytes: args.size,
            seconds: args.seconds,
            qps: args.qps,
            gid_index: args.gid_index,
            tcp_port: args.port + at,
            peer: None,
        };
        runs.push(one(context, args, policy, &pair, &wanted, build, &name)?);
    }
    Ok((runs, pair.link))
}

fn missing(program: &str) -> Run {
    failed(
        program,
        Failure {
            kind: Kind::Missing,
            message: format!("{program} is not installed"),
        },
    )
}

fn failed(name: &str, failure: Failure) -> Run {
    Run {
        name: name.to_owned(),
        about: crate::bandwidth::About::default(),
        memory: crate::bandwidth::Memory::Unknown,
        rows: Vec::new(),
        failures: vec![failure],
    }
}

/// `--help` ends with 1 in all versions, so only its text counts.
fn build(context: &Context, program: &str) -> Result<Build, CliError> {
    let output = process::run(&context.root, &[program, "--help"], HELP)?;
    let mut text = output.stdout;
    text.extend(output.stderr);
    Ok(Build::of(&text))
}

fn one(
    context: &Context,
    args: &Args,
    policy: &Policy,
    pair: &Pair,
    wanted: &Wanted<'_>,
    build: Build,
    name: &str,
) -> Result<Run, CliError> {
    let limit = match args.limit {
        Some(seconds) => Duration::from_secs(seconds),
        None => Duration::from_secs(args.seconds) + OVERHEAD,
    };
    let own = match wanted.argv(build) {
        Ok(argv) => argv,
        Err(failure) => return Ok(failed(name, failure)),
    };
    let from_policy = policy.verify.bandwidth.as_ref().map(|b| b.peer.as_str());
    let peer = args.peer.as_deref().or(from_policy).unwrap_or("loopback");
    let ended = if args.listen {
        start(context, &own)?.wait(limit + WAITS)?
    } else if peer == "loopback" {
        let other = pair.peer.as_ref().unwrap_or(&pair.nic);
        let Side { device, port } = other;
        let waits = Wanted {
            device,
            port: *port,
            ..wanted.clone()
        };
        let asks = Wanted {
            peer: Some("127.0.0.1"),
            ..wanted.clone()
        };
        match (waits.argv(build), asks.argv(build)) {
            (Ok(waits), Ok(asks)) => both(context, &waits, &asks, limit)?,
            (Err(failure), _) | (_, Err(failure)) => return Ok(failed(name, failure)),
        }
    } else {
        if peer.starts_with('-') || peer.is_empty() {
            let message = format!("`{}` is not a host", peer.escape_debug());
            return Err(CliError::new(Exit::Usage, "usage", message));
        }
        let asks = Wanted {
            peer: Some(peer),
            ..wanted.clone()
        };
        match asks.argv(build) {
            Ok(asks) => retried(context, &asks, limit, None)?,
            Err(failure) => return Ok(failed(name, failure)),
        }
    };
    let mut run = run(name, &ended, limit, wanted.buffer);
    if args.listen && ended.output.status == Some(0) {
        // the waiting side of a read prints no row
        run.failures
            .retain(|failure| failure.kind != Kind::NoResult);
    }
    Ok(run)
}

fn start(context: &Context, argv: &[String]) -> Result<process::Running, SysError> {
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    process::start(&context.root, &argv, &[("CUDA_DEVICE_ORDER", "PCI_BUS_ID")])
}

/// Both sides in this node. What the waiting side says counts where it ends first, since then it tells why.
fn both(
    context: &Context,
    waits: &[String],
    asks: &[String],
    limit: Duration,
) -> Result<Ended, CliError> {
    let mut server = start(context, waits)?;
    let asked = retried(context, asks, limit, Some(&mut server))?;
    let rows = !Run::read("", &asked.output.stdout).rows.is_empty();
    if rows || asked.stopped {
        return Ok(asked);
    }
    let served = server.wait(Duration::from_secs(2))?;
    let mut ended = asked;
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
fn retried(
    context: &Context,
    asks: &[String],
    limit: Duration,
    mut server: Option<&mut process::Running>,
) -> Result<Ended, CliError> {
    let until = clock::now() + LISTENS;
    clock::sleep(Duration::from_millis(300));
    loop {
        let ended = start(context, asks)?.wait(limit)?;
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

fn run(name: &str, ended: &Ended, limit: Duration, buffer: Buffer) -> Run {
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
