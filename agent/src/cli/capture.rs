//! `gdr-agent capture`

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use super::nccl_log::{Unreadable, logs_in, tell};
use super::{CliError, Context, Exit, doctor};
use crate::capture::{self, Archive, ArchiveError, Content, Log, Redactor, Tree};
use crate::doctor::{Wanted, examine};
use crate::facts::SMI_LIMIT;
use crate::facts::pci::{Depth, functions};
use crate::nccl_log::harmless;
use crate::package::RPM_FORMAT;
use crate::plain::{counted, shown};
use crate::sys::log_file::{LogFile, PIECE};
use crate::sys::{Root, SysError, archive_file, note_packages};

/// Logs are kept whole, so they have a limit.
const MOST_LOG: usize = 64 << 20;

/// What to take.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The archive to write, such as `node.tar.zst`; it must not be there yet.
    #[arg(value_name = "OUT.tar.zst")]
    out: PathBuf,
    /// Put in this log of a job, too; may be given several times.
    #[arg(long, value_name = "FILE")]
    nccl_log: Vec<PathBuf>,
    /// Put in this output of perftest, too; may be given several times.
    #[arg(long, value_name = "FILE")]
    perftest: Vec<PathBuf>,
    /// Put in what `doctor --pid` looks at: limits and device files of this process.
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Do not run nvidia-smi; `doctor --capture` then says what `doctor --no-smi` does.
    #[arg(long)]
    no_smi: bool,
    /// Leave in addresses (Internet, Ethernet, InfiniBand) and host names.
    #[arg(long)]
    with_addresses: bool,
}

/// The JSON of `capture`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// `gdr-agent/capture/v1`
    schema: &'static str,
    /// The archive.
    file: String,
    /// Its size.
    bytes: usize,
    /// Files whose content is in it.
    files: usize,
    /// Files that are there and could not be read; `doctor --capture` says so, too.
    unreadable: Vec<String>,
    /// Logs in it.
    logs: Vec<String>,
    /// Outputs of perftest in it.
    perftest: Vec<String>,
    /// Whether addresses and host names were left in.
    addresses: bool,
    /// Logs that could not be read.
    errors: Vec<Unreadable>,
}

pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, CliError> {
    context.out.progress("reading what doctor reads");
    let tree = take(context, args)?;
    let redactor = Redactor {
        addresses: args.with_addresses,
        host: host(&context.root),
    };
    let (logs, mut errors) = logs(&args.nccl_log, &redactor);
    let (perftest, unread) = outputs(&args.perftest, &redactor);
    errors.extend(unread);
    let mut archive = Archive {
        live: context.root.is_live(),
        addresses: args.with_addresses,
        pid: args.pid,
        tree,
        logs,
        perftest,
    };
    capture::clean(&mut archive.tree, &redactor);
    let packed = capture::pack(&archive).map_err(|e| failed(&args.out, &e))?;
    // What cannot be read again is not handed to anybody.
    capture::unpack(&packed).map_err(|e| failed(&args.out, &e))?;
    archive_file::write_new(&args.out, &packed).map_err(|e| {
        let there = e.errno() == Some(rustix::io::Errno::EXIST.raw_os_error());
        let error = CliError::from(e);
        if there {
            error.help("choose another name: nothing is replaced")
        } else {
            error
        }
    })?;
    let nodes = archive.tree.nodes.iter();
    let output = Output {
        schema: "gdr-agent/capture/v1",
        file: args.out.display().to_string(),
        bytes: packed.len(),
        files: nodes
            .clone()
            .filter(|(_, node)| matches!(node.content, Content::Whole(_) | Content::Parts(_)))
            .count(),
        unreadable: nodes
            .filter(|(_, node)| {
                node.open_error.is_some() || matches!(node.content, Content::Failed(_))
            })
            .map(|(path, _)| path.clone())
            .collect(),
        logs: archive.logs.iter().map(|log| log.name.clone()).collect(),
        perftest: archive.perftest.iter().map(|o| o.name.clone()).collect(),
        addresses: args.with_addresses,
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

/// Asks everything once, and keeps what was read.
fn take(context: &Context, args: &Args) -> Result<Tree, CliError> {
    let policy = doctor::policy(context)?;
    let root = Root::open(context.root.path())?
        .speaking_of_the_node()
        .noting();
    let wanted = Wanted {
        pid: args.pid,
        smi: !args.no_smi,
        ..Wanted::default()
    };
    let _ = examine(&root, &policy, wanted, &|text| context.out.waiting(text));
    // What later versions may ask. Whether it could be read is noted, and that is all that is wanted here.
    let _ = functions(&root, &Depth::Everything);
    for path in [
        "/proc/sys/kernel/arch",
        "/proc/cpuinfo",
        "/proc/version",
        "/var/lib/dpkg/status",
    ] {
        let _ = root.read_if_there(path);
    }
    // A directory is only read.
    if root.is_live() {
        note_packages(&root, RPM_FORMAT, SMI_LIMIT);
    }
    // The answer of uname(2) is in no file of older kernels; a program's header is as good.
    if matches!(root.stat("/proc/sys/kernel/arch"), Ok(None)) {
        let _ = root.read_if_there("/usr/bin/sh");
    }
    Ok(root.noted())
}

fn host(root: &Root) -> Option<String> {
    let read = |path| root.text_if_there(path).ok().flatten();
    read("/proc/sys/kernel/hostname")
        .or_else(|| read("/etc/hostname"))
        .filter(|name| !name.is_empty() && name != "localhost")
}

fn logs(paths: &[PathBuf], redactor: &Redactor) -> (Vec<Log>, Vec<Unreadable>) {
    let (files, mut errors) = logs_in(paths);
    let mut logs = Vec::new();
    for path in files {
        match read_log(&path) {
            Ok(bytes) => logs.push(Log {
                name: path.display().to_string(),
                bytes: redactor.log(&String::from_utf8_lossy(&bytes)).into_bytes(),
            }),
            Err(e) => errors.push(Unreadable::new(&path, &e)),
        }
    }
    (logs, errors)
}

/// As they are but for addresses: what is told from them are messages and numbers.
fn outputs(paths: &[PathBuf], redactor: &Redactor) -> (Vec<Log>, Vec<Unreadable>) {
    let (mut outputs, mut errors) = (Vec::new(), Vec::new());
    for path in paths {
        match read_log(path) {
            Ok(bytes) => outputs.push(Log {
                name: path.display().to_string(),
                bytes: redactor.text(&String::from_utf8_lossy(&bytes)).into_bytes(),
            }),
            Err(e) => errors.push(Unreadable::new(path, &e)),
        }
    }
    (outputs, errors)
}

fn read_log(path: &Path) -> Result<Vec<u8>, SysError> {
    let mut log = LogFile::open(path)?;
    let mut bytes = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        match log.read(&mut piece)? {
            0 => return Ok(bytes),
            length => bytes.extend_from_slice(piece.get(..length).unwrap_or_default()),
        }
        if bytes.len() > MOST_LOG {
            return Err(SysError::Refused {
                action: "put in",
                path: path.into(),
                why: format!("it has more than {} MiB; cut it", MOST_LOG >> 20),
            });
        }
    }
}

pub(super) fn failed(path: &Path, error: &ArchiveError) -> CliError {
    let kind = match error {
        ArchiveError::NotOne(_) => "capture-format",
        ArchiveError::Hostile(_) | ArchiveError::TooLarge(_) => "capture-refused",
        ArchiveError::OtherVersion(_) => "capture-version",
        _ => "capture-damaged",
    };
    let exit = if kind == "capture-refused" {
        Exit::Unsafe
    } else {
        Exit::Internal
    };
    let why = shown(&error.to_string());
    CliError::new(exit, kind, format!("{}: {why}", path.display()))
}

fn text(output: &Output) -> String {
    let mut text = format!(
        "{}: {} in {} KiB\n",
        harmless(output.file.as_bytes()),
        counted(output.files, "file"),
        output.bytes.div_ceil(1024)
    );
    for log in output.logs.iter().chain(&output.perftest) {
        text.push_str(&format!("with {}\n", harmless(log.as_bytes())));
    }
    if !output.unreadable.is_empty() {
        let few = output
            .unreadable
            .iter()
            .take(5)
            .map(|path| harmless(path.as_bytes()))
            .collect::<Vec<_>>()
            .join(", ");
        text.push_str(&format!(
            "{} could not be read, which the archive says of each ({few}{}); run it as root to have all\n",
            counted(output.unreadable.len(), "file"),
            if output.unreadable.len() > 5 { ", ..." } else { "" }
        ));
    }
    if !output.addresses {
        text.push_str("addresses and host names are left out; look through it before you give it away: tar --zstd -tvf FILE\n");
    }
    text.push_str("read it anywhere: gdr-agent doctor --capture FILE\n");
    text
}
