//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::output::Format;

/// Makes GPUDirect RDMA work, proves that it works, and keeps the node bootable.
#[derive(Debug, Parser)]
#[command(
    name = "gdr-agent",
    version,
    about,
    max_term_width = 100,
    disable_help_subcommand = true
)]
#[command(after_help = "Examples:
  gdr-agent plan                      what would change here, and the exact diff
  gdr-agent apply --reboot            stage it and ask for the reboot that tries it
  gdr-agent status                    where the transaction stands, what happens next
  gdr-agent topology --root ./capture the paths of another node, from a directory

Exit codes: 0 done or met, 1 internal error, 2 usage, 3 changes pending or drift, 4 policy invalid,
5 apply failed and undone, 6 verification failed and rolled back, 7 needs a person, 8 reboot
outstanding, 9 refused as unsafe.")]
pub struct Args {
    /// The policy file; its drop-ins are FILE without `.toml` plus `.d/*.toml`.
    #[arg(long, global = true, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// Read from and write to this directory instead of `/`.
    #[arg(long, global = true, value_name = "DIR", default_value = "/")]
    pub root: PathBuf,
    /// How to print the result.
    #[arg(long, global = true, value_enum, default_value_t)]
    pub format: Format,
    /// Print errors only (JSON results are still printed).
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Say more about what is done; twice for debugging.
    #[arg(short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Print everything that was read, with where it came from.
    Facts,
}
