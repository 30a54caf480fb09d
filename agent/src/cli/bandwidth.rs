//! `gdr-agent bandwidth`

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gdr_policy::Policy;
use schemars::JsonSchema;
use serde::Serialize;

use super::output::{paint, style};
use super::topology::policy_or_default;
use super::{CliError, Context, Exit};
use crate::acs::with_selectors;
use crate::bandwidth::{About, Failure, Memory, Ratio, Row, Run, Test, judge};
use crate::checks::{Outcome, Severity};
use crate::facts::pci::{Depth, functions};
use crate::facts::rdma_devices;
use crate::finding::Finding;
use crate::measure::{self, Ceiling, How, NoDevice, Peer};
use crate::nccl_log::harmless;
use crate::pci::Bdf;
use crate::pci::topology::Topology;
use crate::pci::tree::Tree;
use crate::sys::log_file::LogFile;

/// What is measured, or read.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Read perftest's output from FILE (text or JSON, plain, gzip or Zstandard; `-` is standard input). May be repeated.
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
    /// The GPU's PCI address. Without it: the first GPU.
    #[arg(long, value_name = "BDF", conflicts_with = "from")]
    gpu: Option<Bdf>,
    /// The NIC's PCI address. Without it: the GPU's nearest.
    #[arg(long, value_name = "BDF", conflicts_with = "from")]
    nic: Option<Bdf>,
    /// `loopback`: both sides in this node; or the host on which `gdr-agent bandwidth --listen` waits. Without it: the policy's.
    #[arg(long, value_name = "loopback|HOST", conflicts_with_all = ["from", "listen"])]
    peer: Option<String>,
    /// For loopback, the other side's NIC. Without it: the same.
    #[arg(long, value_name = "BDF", conflicts_with_all = ["from", "listen"])]
    peer_nic: Option<Bdf>,
    /// Be the side that waits, for `--peer` on another node.
    #[arg(long, conflicts_with = "from")]
    listen: bool,
    /// Which direction.
    #[arg(long, value_enum, default_value_t = Test::Write, conflicts_with = "from")]
    test: Test,
    /// Message size in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = measure::BYTES, value_parser = clap::value_parser!(u64).range(2..=1 << 30), conflicts_with = "from")]
    size: u64,
    /// Seconds that each run takes.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600), conflicts_with = "from")]
    seconds: u64,
    /// Seconds after which a run is stopped as hung. Without it: 30 more than it should take.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86400), conflicts_with = "from")]
    limit: Option<u64>,
    /// Queue pairs.
    #[arg(long, value_name = "N", default_value_t = measure::QPS, value_parser = clap::value_parser!(u32).range(1..=1024), conflicts_with = "from")]
    qps: u32,
    /// Index of the GID, where perftest's own choice does not do.
    #[arg(long, value_name = "N", conflicts_with = "from")]
    gid_index: Option<u32>,
    /// TCP port on which both sides meet; the run on GPU memory takes the next one.
    #[arg(long, value_name = "PORT", default_value_t = measure::PORT, value_parser = clap::value_parser!(u16).range(1..=65534), conflicts_with = "from")]
    port: u16,
}

/// The JSON of `bandwidth`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/bandwidth/v1`
    schema: &'static str,
    /// `met` if GPU memory was measured and is as fast as it has to be.
    verdict: Outcome,
    /// Every row of every run, those before a failure too.
    results: Vec<Measured>,
    /// What went wrong in the first run in which something did, in perftest's words.
    error: Option<String>,
    /// The outputs, in the order of the command line or of their start.
    runs: Vec<RunOutput>,
    /// What GPU memory reaches of what host memory reaches, all else alike.
    ratios: Vec<Ratio>,
    /// The least average that the policy asks for, 10^9 bits per second.
    min_gbps: Option<f64>,
    /// What the link can carry at most.
    link: Option<Ceiling>,
    /// What is wrong, or not known.
    findings: Vec<Finding>,
}

/// One row.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Result")]
struct Measured {
    /// Of which run, from 0.
    run: usize,
    /// The row.
    #[serde(flatten)]
    row: Row,
}

/// One output of perftest.
#[derive(Debug, Serialize, JsonSchema)]
struct RunOutput {
    /// The path as given, or the command.
    name: String,
    /// Where the buffer lay.
    memory: Memory,
    /// The best average, 10^9 bits per second.
    best_gbps: Option<f64>,
    /// What was tested.
    #[serde(flatten)]
    about: About,
    /// What went wrong, in perftest's words.
    error: Option<String>,
    /// The same, line by line.
    failures: Vec<Failure>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, CliError> {
    let policy = policy_or_default(context)?;
    let (runs, link) = if args.from.is_empty() {
        measured(context, args, &policy)?
    } else {
        (read(&args.from)?, None)
    };
    let output = output(&runs, &policy, link);
    context.out.result(&output, || text(&output))?;
    Ok(match output.verdict {
        Outcome::Met => Exit::Done,
        _ if !args.from.is_empty() => Exit::Done,
        // the other side judges
        _ if args.listen && output.error.is_none() => Exit::Done,
        _ => Exit::Pending,
    })
}

/// The runs, and what the link can carry.
fn measured(
    context: &Context,
    args: &Args,
    policy: &Policy,
) -> Result<(Vec<Run>, Option<Ceiling>), CliError> {
    let root = &context.root;
    let Some(build) = measure::build(root, args.test)? else {
        return Ok((vec![measure::missing(args.test)], None));
    };
    let topology = with_selectors(&policy.devices, |selectors| {
        let functions = functions(root, &Depth::Topology(selectors))?;
        Ok::<_, CliError>(Topology::of(&Tree::build(&functions), selectors))
    })?;
    let devices = rdma_devices(root);
    let devices = devices.get().map(Vec::as_slice).unwrap_or_default();
    let pair = measure::pair(&topology, devices, args.gpu, args.nic, args.peer_nic)?;
    let from_policy = policy.verify.bandwidth.as_ref().map(|b| b.peer.as_str());
    let peer = match args.peer.as_deref().or(from_policy) {
        _ if args.listen => Peer::Listen,
        None | Some("loopback") => Peer::Loopback,
        Some(host) if host.starts_with('-') || host.is_empty() => {
            let message = format!("`{}` is not a host", host.escape_debug());
            return Err(CliError::new(Exit::Usage, "usage", message));
        }
        Some(host) => Peer::Host(host),
    };
    let mut runs = Vec::new();
    for (at, buffer) in (0u16..).zip(measure::buffers(policy, &pair, build)) {
        let name = measure::name(args.test, &pair, buffer);
        context
            .out
            .progress(&format!("{name}, {} s ...", args.seconds));
        let how = How {
            test: args.test,
            peer,
            bytes: args.size,
            seconds: args.seconds,
            qps: args.qps,
            gid_index: args.gid_index,
            tcp_port: args.port + at,
            limit: args.limit.map(Duration::from_secs),
            until: None,
        };
        runs.push(measure::run(root, &how, &pair, buffer, build)?);
    }
    Ok((runs, pair.link))
}

impl From<NoDevice> for CliError {
    fn from(e: NoDevice) -> Self {
        Self::new(Exit::Usage, "no-device", e.message).help(e.help)
    }
}

fn output(runs: &[Run], policy: &Policy, link: Option<Ceiling>) -> Output {
    let min_gbps = policy.verify.bandwidth.as_ref().map(|b| b.min_gbps);
    let ceiling = link.as_ref().map(|link| (link.gbps, link.from.as_str()));
    let judgement = judge(runs, min_gbps, ceiling);
    let results = (0..).zip(runs).flat_map(|(run, output)| {
        let rows = output.rows.iter().cloned();
        rows.map(move |row| Measured { run, row })
    });
    Output {
        schema: "gdr-agent/bandwidth/v1",
        verdict: judgement.verdict,
        results: results.collect(),
        error: runs.iter().find_map(Run::error),
        runs: runs
            .iter()
            .map(|run| RunOutput {
                name: run.name.clone(),
                memory: run.memory,
                best_gbps: run.best().map(|row| row.average_gbps),
                about: run.about.clone(),
                error: run.error(),
                failures: run.failures.clone(),
            })
            .collect(),
        ratios: judgement.ratios,
        min_gbps,
        link,
        findings: judgement.findings,
    }
}

/// Outputs are small: a table has a few lines.
const LARGEST: u64 = 64 << 20;

pub(super) fn read(files: &[PathBuf]) -> Result<Vec<Run>, CliError> {
    if files.iter().filter(|f| *f == Path::new("-")).count() > 1 {
        let message = "standard input (`-`) can be read once only";
        return Err(CliError::new(Exit::Usage, "usage", message));
    }
    let mut runs = Vec::new();
    for path in files {
        let name = path.display().to_string();
        let mut bytes = Vec::new();
        let mut log = LogFile::open(path)?.limited(LARGEST + 1);
        log.read_to_end(&mut bytes)
            .map_err(|e| CliError::new(Exit::Internal, "io", format!("cannot read {name}: {e}")))?;
        if bytes.len() as u64 > LARGEST {
            let message = format!(
                "{name} is larger than {} MiB, which no output of perftest is",
                LARGEST >> 20
            );
            return Err(CliError::new(Exit::Usage, "too-large", message)
                .help("give the lines of ib_write_bw or ib_read_bw only"));
        }
        runs.push(Run::read(&name, &bytes));
    }
    Ok(runs)
}

fn text(output: &Output) -> String {
    let mut text = String::new();
    let (word, colour) = match output.verdict {
        Outcome::Met => ("met", style::GOOD),
        Outcome::Failed => ("failed", style::BAD),
        Outcome::Unknown => ("unknown", style::WARN),
    };
    text.push_str(&format!("{}\n", paint(colour, word)));
    for (at, run) in output.runs.iter().enumerate() {
        let about = &run.about;
        let plain = |text: &Option<String>, none: &str| match text {
            Some(text) => harmless(text.as_bytes()),
            None => none.to_owned(),
        };
        let device = plain(&about.device, "device not told");
        let test = plain(&about.test, "test not told");
        text.push_str(&format!(
            "\n{}\n  {test}, {device}, {}\n",
            paint(style::BOLD, &harmless(run.name.as_bytes())),
            run.memory.word()
        ));
        let rows: Vec<&Measured> = output.results.iter().filter(|r| r.run == at).collect();
        if !rows.is_empty() {
            text.push_str("       bytes  iterations  peak Gb/s  average Gb/s\n");
        }
        // the last rows are those of large messages, which are about the path
        let hidden = rows.len().saturating_sub(8);
        if hidden > 0 {
            text.push_str(&format!("  {hidden} rows more; `--format json` has all\n"));
        }
        for Measured { row, .. } in rows.into_iter().skip(hidden) {
            let peak = row
                .peak_gbps
                .map_or("-".to_owned(), |peak| format!("{peak:.2}"));
            text.push_str(&format!(
                "  {:>10}  {:>10}  {peak:>9}  {:>12.2}\n",
                row.bytes, row.iterations, row.average_gbps
            ));
        }
        if let Some(error) = &run.error {
            let error = harmless(error.as_bytes());
            text.push_str(&format!("  {} {error}\n", paint(style::BAD, "error:")));
        }
    }
    for ratio in &output.ratios {
        text.push_str(&format!(
            "\nGPU memory reaches {:.0} % of host memory with {} bytes\n",
            ratio.ratio * 100.0,
            ratio.bytes
        ));
    }
    for finding in &output.findings {
        let colour = match (finding.outcome, finding.severity) {
            (Outcome::Failed, Severity::Required) => style::BAD,
            _ => style::WARN,
        };
        text.push_str(&format!(
            "\n{}  {}\n",
            paint(colour, &finding.id),
            harmless(finding.subject.as_bytes())
        ));
        for line in &finding.evidence {
            text.push_str(&format!("    {}\n", harmless(line.as_bytes())));
        }
        if let Some(fix) = &finding.fix {
            text.push_str(&format!("    {} {fix}\n", paint(style::BOLD, "fix:")));
        }
    }
    text
}
