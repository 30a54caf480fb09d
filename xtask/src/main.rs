//! `cargo xtask`: what packaging needs from the code.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the rules about files and processes are the agent's; this only builds packages"
)]

mod command;
mod dist;
mod elf;
mod generate;
mod man;
mod policy_keys;
mod policy_man;
#[cfg(test)]
mod policy_md;
mod roff;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

type Failed = Box<dyn std::error::Error>;

/// Packages, manual pages and completions.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build the .deb, the .rpm and the Ansible collection; prints their paths.
    Dist(dist::Args),
    /// Write manual pages and completions below a directory.
    Generate {
        /// The directory.
        to: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Dist(args) => dist::run(&args),
        Task::Generate { to } => {
            dist::Stamp::read().and_then(|stamp| generate::all(&to, &stamp.day))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("cargo xtask: {e}");
            ExitCode::FAILURE
        }
    }
}
