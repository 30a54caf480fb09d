//! The command line: one file per verb.

mod acs;
mod apply;
mod args;
mod bandwidth;
mod boot;
mod capture;
mod cmdline;
mod doctor;
mod error;
mod exit;
mod facts;
mod load;
mod metrics;
mod nccl_log;
mod output;
mod plan;
mod policy;
mod powers;
mod rehearsal;
mod rollback;
mod schema;
mod status;
mod topology;
mod verify;

use std::process::ExitCode;
use std::rc::Rc;

use clap::{CommandFactory, Parser};

use crate::apply::{Engine, EngineError};
use crate::reboot::Coordinator;
use crate::sys::Root;

pub use error::CliError;
pub use exit::Exit;
pub use output::{Format, Out};

use args::{Args, Verb};

/// What every verb needs.
#[derive(Debug)]
pub struct Context {
    /// The root that is read and written.
    pub root: Root,
    /// The policy file that was named, as the caller's file system names it.
    pub policy: Option<std::path::PathBuf>,
    /// Where results go.
    pub out: Out,
    /// Who is asked for reboots in the place of the policy's coordinator; nobody in the binary.
    pub coordinator: Option<Rc<dyn Coordinator>>,
}

impl Context {
    /// Takes the lock and opens the journal.
    ///
    /// # Errors
    /// As [`Engine::open`].
    fn engine<'r>(&'r self, who: &str) -> Result<Engine<'r>, EngineError> {
        let mut engine = Engine::open(&self.root, who)?;
        if let Some(coordinator) = &self.coordinator {
            engine.coordinate(coordinator.clone());
        }
        Ok(engine)
    }
}

/// The command line as data: manual pages and completions are made from it.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

/// Runs the command line and returns the process's exit code.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(e) => {
            let _ = e.print();
            // Help and version are not errors.
            return if e.use_stderr() {
                Exit::Usage.into()
            } else {
                Exit::Done.into()
            };
        }
    };
    let unit = matches!(args.verb, Verb::Boot(_));
    log_to_stderr(args.verbose + u8::from(unit));
    let out = Out {
        format: args.format,
        quiet: args.quiet,
    };
    match run(args, out) {
        Ok(exit) => exit.into(),
        Err(error) => {
            out.error(&error);
            error.exit.into()
        }
    }
}

fn run(args: Args, out: Out) -> Result<Exit, CliError> {
    let root = Root::open(&args.root)?;
    verb(args, out, root, None)
}

/// Does what a command line says, as the binary does, on a root that is open already, whatever `--root` says.
/// `coordinator` is asked for reboots instead of the policy's.
///
/// # Errors
/// As the binary's: the command line cannot be understood, or the command failed.
pub fn run_on(
    root: Root,
    coordinator: Option<Rc<dyn Coordinator>>,
    words: &[&str],
) -> Result<Exit, CliError> {
    let args = Args::try_parse_from([&["gdr-agent"], words].concat())
        .map_err(|e| CliError::new(Exit::Usage, "usage", e.to_string()))?;
    let out = Out {
        format: args.format,
        quiet: args.quiet,
    };
    verb(args, out, root, coordinator)
}

fn verb(
    args: Args,
    out: Out,
    root: Root,
    coordinator: Option<Rc<dyn Coordinator>>,
) -> Result<Exit, CliError> {
    let has_it = match &args.verb {
        Verb::Topology => true,
        Verb::Doctor(args) => out.format == Format::Html && !args.list,
        _ => false,
    };
    if let Some(picture) = out.format.picture().filter(|_| !has_it) {
        let message = match out.format {
            Format::Html => {
                "`--format html` is a page, and only `topology` and `doctor` have one".to_owned()
            }
            _ => format!("`--format {picture}` is a picture, and only `topology` has one"),
        };
        return Err(CliError::new(Exit::Usage, "usage", message)
            .help("this command prints text, or JSON with `--format json`"));
    }
    let context = Context {
        root,
        policy: args.policy,
        out,
        coordinator,
    };
    powers::keep(&context, &args.verb)?;
    match args.verb {
        Verb::Policy(verb) => policy::run(&context, verb),
        Verb::Facts => facts::run(&context),
        Verb::Plan => plan::run(&context),
        Verb::Apply(args) => apply::run(&context, &args),
        Verb::Status => status::run(&context),
        Verb::Verify => verify::run(&context),
        Verb::Rollback => rollback::run(&context),
        Verb::Topology => topology::run(&context),
        Verb::Acs(verb) => acs::run(&context, &verb),
        Verb::Cmdline(args) => cmdline::run(&context, &args),
        Verb::Capture(args) => capture::run(&context, &args),
        Verb::Doctor(args) => doctor::run(&context, &args),
        Verb::NcclLog(args) => nccl_log::run(&context, &args),
        Verb::Bandwidth(args) => bandwidth::run(&context, &args),
        Verb::Metrics(args) => metrics::run(&context, &args),
        Verb::Schema { name } => schema::run(&context, name.as_deref()),
        Verb::Boot(verb) => boot::run(&context, verb),
    }
}

fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => tracing::Level::WARN,
        1 => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false)
        .try_init();
}
