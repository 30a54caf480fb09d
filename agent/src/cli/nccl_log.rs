//! `gdr-agent nccl-log`

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::output::{Out, paint, style};
use super::topology::styles;
use super::{CliError, Context, Exit};
use crate::nccl_log::{FileReport, Reader, Verdict, combine, harmless, render};
use crate::plain::counted;
use crate::sys::log_file::{self, LogFile, PIECE};
use crate::sys::{SysError, clock};

/// Which logs.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// A log, plain or packed with gzip or Zstandard; a directory of logs; `-` for standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// The JSON of `nccl-log`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/nccl-log/v1`
    schema: &'static str,
    /// Of all files together, as logs of one job: unknown if one that matters is.
    verdict: Verdict,
    /// How many files have which verdict.
    verdicts: BTreeMap<Verdict, u64>,
    /// In the order of the command line; directories in order of names.
    files: Vec<FileReport>,
    /// Files that could not be read, or not to their end.
    errors: Vec<Unreadable>,
}

/// A file that could not be read, or not to its end.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Unreadable {
    /// The path as given.
    pub(super) name: String,
    /// A stable word for machines.
    pub(super) kind: String,
    /// What was tried, why it failed.
    pub(super) message: String,
}

impl Unreadable {
    pub(super) fn new(path: &Path, error: &SysError) -> Self {
        Self {
            name: path.display().to_string(),
            kind: error.kind().to_owned(),
            message: harmless(error.to_string().as_bytes()),
        }
    }
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, CliError> {
    if args.files.iter().filter(|f| *f == Path::new("-")).count() > 1 {
        let message = "standard input (`-`) can be read once only";
        return Err(CliError::new(Exit::Usage, "usage", message));
    }
    let (reports, errors) = read_logs(&args.files, context.out);
    let mut verdicts: BTreeMap<Verdict, u64> = BTreeMap::new();
    for report in &reports {
        *verdicts.entry(report.verdict).or_default() += 1;
    }
    let output = Output {
        schema: "gdr-agent/nccl-log/v1",
        verdict: combine(verdicts.keys().copied()),
        verdicts,
        files: reports,
        errors,
    };
    context.out.result(&output, || text(&output))?;
    tell(&output.errors);
    Ok(if output.errors.is_empty() {
        Exit::Done
    } else {
        Exit::Internal
    })
}

/// Reads all logs, those in directories too; what could not be read is told apart.
pub(super) fn read_logs(paths: &[PathBuf], out: Out) -> (Vec<FileReport>, Vec<Unreadable>) {
    let (files, mut errors) = logs_in(paths);
    let mut reports = Vec::new();
    for (report, error) in read_all(&files, out) {
        reports.extend(report);
        errors.extend(error);
    }
    (reports, errors)
}

/// The files that are meant: those in a directory in order of their names.
pub(super) fn logs_in(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<Unreadable>) {
    let mut errors = Vec::new();
    let mut files = Vec::new();
    for path in paths {
        match log_file::expand(path) {
            Ok(found) if found.is_empty() => errors.push(Unreadable {
                name: path.display().to_string(),
                kind: "not-found".into(),
                message: format!(
                    "{} holds no file",
                    harmless(path.display().to_string().as_bytes())
                ),
            }),
            Ok(found) => files.extend(found),
            Err(error) => errors.push(Unreadable::new(path, &error)),
        }
    }
    (files, errors)
}

/// Says on standard error what could not be read.
pub(super) fn tell(errors: &[Unreadable]) {
    let mut stderr = anstream::stderr().lock();
    for error in errors {
        let message = harmless(error.message.as_bytes());
        let _ = writeln!(stderr, "{} {message}", paint(style::BAD, "error:"));
    }
}

type Answer = (Option<FileReport>, Option<Unreadable>);

/// Reads all files, as many at a time as there are processors; the answers in the files' order.
fn read_all(files: &[PathBuf], out: Out) -> Vec<Answer> {
    let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
    let workers = processors.min(files.len());
    let answers: Vec<Mutex<Option<Answer>>> = files.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let bytes = AtomicU64::new(0);
    let (done, wait) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let done = done.clone();
            let (answers, next, bytes) = (&answers, &next, &bytes);
            scope.spawn(move || {
                let mut piece = vec![0; PIECE];
                while let Some((path, answer)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    files.get(at).zip(answers.get(at))
                } {
                    let read = read(path, &mut piece, bytes);
                    if let Ok(mut answer) = answer.lock() {
                        *answer = Some(read);
                    }
                }
                drop(done);
            });
        }
        drop(done);
        progress(out, &wait, &bytes, files);
    });
    let answers = answers.into_iter().zip(files);
    answers
        .map(|(answer, path)| match answer.into_inner() {
            Ok(Some(answer)) => answer,
            // a thread that died must not make its files disappear
            _ => (
                None,
                Some(Unreadable {
                    name: path.display().to_string(),
                    kind: "internal".into(),
                    message: format!("reading {} ended unexpectedly", path.display()),
                }),
            ),
        })
        .collect()
}

fn read(path: &Path, piece: &mut [u8], bytes: &AtomicU64) -> Answer {
    let name = path.display().to_string();
    let mut log = match LogFile::open(path) {
        Ok(log) => log,
        Err(error) => return (None, Some(Unreadable::new(path, &error))),
    };
    let mut reader = Reader::new();
    loop {
        match log.read(piece) {
            Ok(0) => return (Some(reader.report(&name, None)), None),
            Ok(length) => {
                reader.push(piece.get(..length).unwrap_or_default());
                bytes.fetch_add(length as u64, Ordering::Relaxed);
            }
            Err(error) => {
                let error = Unreadable::new(path, &error);
                // a directory, or nothing at all, is no log
                let report =
                    (reader.bytes() > 0).then(|| reader.report(&name, Some(error.message.clone())));
                return (report, Some(error));
            }
        }
    }
}

/// Waits until all senders are gone; after a second, tells a person on a terminal how far it is.
fn progress(out: Out, wait: &mpsc::Receiver<()>, bytes: &AtomicU64, files: &[PathBuf]) {
    if !out.tells() {
        let _ = wait.recv();
        return;
    }
    let total: u64 = files.iter().map(|file| log_file::size(file)).sum();
    let start = clock::now();
    let mut shown = false;
    while let Err(mpsc::RecvTimeoutError::Timeout) = wait.recv_timeout(Duration::from_millis(250)) {
        if start.elapsed() < Duration::from_secs(1) {
            continue;
        }
        let read = bytes.load(Ordering::Relaxed);
        let line = format!(
            "\rread {} MB; the files have {} MB",
            read >> 20,
            total >> 20
        );
        let _ = write!(anstream::stderr(), "{}", paint(style::DIM, &line));
        shown = true;
    }
    if shown {
        let _ = write!(anstream::stderr(), "\r\x1b[K");
    }
}

/// Files that are told one by one; a job's thousand files are summed up.
const SHOWN: usize = 20;

fn text(output: &Output) -> String {
    let mut text = String::new();
    let files = &output.files;
    if files.len() > 1 {
        let counts = output.verdicts.iter();
        let counts: Vec<String> = counts.map(|(v, n)| format!("{n} {}", v.word())).collect();
        let head = style::BOLD;
        text.push_str(&format!(
            "{head}{} files: {}{head:#} ({})\n\n",
            files.len(),
            output.verdict.word(),
            counts.join(", ")
        ));
    }
    let mut order: Vec<&FileReport> = files.iter().collect();
    if files.len() > SHOWN {
        // what is wrong first
        order.sort_by_key(|report| match report.verdict {
            Verdict::Partial => 0,
            Verdict::NotEngaged => 1,
            Verdict::Unknown => 2,
            Verdict::Engaged => 3,
            Verdict::NotApplicable => 4,
        });
    }
    let shown = order.iter().take(SHOWN);
    let shown: Vec<String> = shown.map(|report| render::file(report, styles())).collect();
    text.push_str(&shown.join("\n"));
    if files.len() > SHOWN {
        text.push_str(&format!(
            "\nand {}; `--format json` has all\n",
            counted(files.len() - SHOWN, "more file")
        ));
    }
    text
}
