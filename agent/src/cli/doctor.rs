//! `gdr-agent doctor`

use std::path::{Path, PathBuf};

use gdr_policy::Policy;
use schemars::JsonSchema;
use serde::Serialize;

use super::nccl_log::{Unreadable, read_logs, tell};
use super::topology::styles;
use super::{CliError, Context, Exit, Format, load};
use crate::bandwidth::Run;
use crate::capture;
use crate::checks::Outcome;
use crate::checks::registry::{self, Kind};
use crate::doctor::{self, Report, Wanted, page, render};
use crate::nccl_log::Reader;
use crate::sys::{Root, archive_file};

/// What to look at besides the node.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A log of a job: plain, gzip or Zstandard, a directory, or `-`; may be given several times.
    #[arg(long, value_name = "FILE")]
    nccl_log: Vec<PathBuf>,
    /// An output of perftest, text or JSON, as evidence of bandwidth; may be given several times.
    #[arg(long, value_name = "FILE")]
    perftest: Vec<PathBuf>,
    /// Do not run nvidia-smi, which takes seconds, and may hang on a sick GPU until its time is up.
    #[arg(long)]
    no_smi: bool,
    /// Look at a capture of a node, and the logs in it, instead of this node.
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Look at this process, too: its limits, and its memory maps, which are weak evidence.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Print everything that can be asked and found.
    #[arg(long, conflicts_with_all = ["nccl_log", "perftest", "pid", "capture", "no_smi"])]
    pub(super) list: bool,
}

/// The JSON of `doctor`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/doctor/v1`
    schema: &'static str,
    /// The report.
    #[serde(flatten)]
    report: Report,
    /// Logs that could not be read, or not to their end.
    errors: Vec<Unreadable>,
}

/// The JSON of `doctor --list`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ListOutput {
    /// `gdr-agent/doctor-list/v1`
    schema: &'static str,
    /// Everything that can be asked and found, what is to be done first at the front.
    entries: Vec<ListEntry>,
}

/// An entry of the list.
#[derive(Debug, Serialize, JsonSchema)]
struct ListEntry {
    /// The entry.
    #[serde(flatten)]
    entry: &'static registry::Entry,
    /// Whether it is asked on a node, and so has all three outcomes.
    asked: bool,
    /// Where it is described.
    see: String,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, CliError> {
    if args.list {
        return list(context);
    }
    if args
        .nccl_log
        .iter()
        .chain(&args.perftest)
        .filter(|f| *f == Path::new("-"))
        .count()
        > 1
    {
        let message = "standard input (`-`) can be read once only";
        return Err(CliError::new(Exit::Usage, "usage", message));
    }
    let policy = policy(context)?;
    let (logs, errors) = read_logs(&args.nccl_log, context.out);
    let runs = super::bandwidth::read(&args.perftest)?;
    if let Some(path) = &args.capture {
        let (root, mut wanted) = open_capture(context, path)?;
        wanted.logs.extend(logs);
        wanted.runs.extend(runs);
        wanted.pid = args.pid.or(wanted.pid);
        return print(
            context,
            doctor::examine(&root, &policy, wanted, &|_| {}),
            errors,
        );
    }
    let wanted = Wanted {
        pid: args.pid,
        logs,
        runs,
        smi: !args.no_smi,
    };
    let root = Root::open(context.root.path())?.speaking_of_the_node();
    let tell = |text: &str| context.out.waiting(text);
    let report = doctor::examine(&root, &policy, wanted, &tell);
    print(context, report, errors)
}

/// A capture as a root, with what was asked for when it was taken.
fn open_capture(context: &Context, path: &Path) -> Result<(Root, Wanted), CliError> {
    if !context.root.is_live() {
        let message = "`--root` and `--capture` are two nodes; choose one";
        return Err(CliError::new(Exit::Usage, "usage", message));
    }
    let packed = archive_file::read(path, capture::MOST_PACKED)?;
    let archive = capture::unpack(&packed).map_err(|e| super::capture::failed(path, &e))?;
    let logs = archive.logs.iter().map(|log| {
        let mut reader = Reader::new();
        reader.push(&log.bytes);
        reader.report(&log.name, None)
    });
    let runs = archive.perftest.iter();
    let runs = runs.map(|output| Run::read(&output.name, &output.bytes));
    let wanted = Wanted {
        pid: archive.pid,
        logs: logs.collect(),
        runs: runs.collect(),
        ..Wanted::default()
    };
    let root = Root::captured(path, archive.tree, archive.live)?;
    Ok((root, wanted))
}

fn print(context: &Context, report: Report, errors: Vec<Unreadable>) -> Result<Exit, CliError> {
    let output = Output {
        schema: "gdr-agent/doctor/v1",
        report,
        errors,
    };
    if context.out.format == Format::Html {
        context.out.raw(&page::page(&output.report))?;
    } else {
        context
            .out
            .result(&output, || render::report(&output.report, styles()))?;
    }
    tell(&output.errors);
    Ok(match output.report.verdict {
        _ if !output.errors.is_empty() => Exit::Internal,
        Outcome::Met => Exit::Done,
        Outcome::Failed | Outcome::Unknown => Exit::Pending,
    })
}

/// The default policy's selectors find what there is; a policy that was named on the command line may know better.
pub(super) fn policy(context: &Context) -> Result<Policy, CliError> {
    let mut policy = Policy::default();
    if context.policy.is_some() {
        policy.devices = load::policy(context)?.loaded.policy.devices;
    }
    Ok(policy)
}

fn list(context: &Context) -> Result<Exit, CliError> {
    let entries = doctor::list();
    let output = ListOutput {
        schema: "gdr-agent/doctor-list/v1",
        entries: entries
            .iter()
            .map(|entry| ListEntry {
                entry,
                asked: entry.kind == Kind::Check,
                see: entry.anchor(),
            })
            .collect(),
    };
    context
        .out
        .result(&output, || render::list(&entries, styles()))?;
    Ok(Exit::Done)
}
