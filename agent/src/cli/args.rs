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
    /// Print errors only (JSON and pictures are still printed).
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
    /// Check, show or start a policy.
    #[command(subcommand)]
    Policy(super::policy::Verb),
    /// Print everything that was read, with where it came from.
    Facts,
    /// Print the steps that the policy needs and the exact diff; change nothing.
    #[command(after_help = "Examples:
  gdr-agent plan
  gdr-agent plan --format diff --root /mnt/image
  gdr-agent plan --policy new.toml --format json | jq .steps")]
    Plan,
    /// Stage the policy's changes and, by policy, ask for the reboot that tries them.
    #[command(after_help = "Examples:
  gdr-agent apply --reboot            stage, and ask the policy's coordinator for the reboot
  gdr-agent apply --no-reboot         stage only
  gdr-agent apply --dry-run-reboot    say who would be asked for the reboot, and what they say now
  gdr-agent apply --bake --root DIR   make the first boot of an image the trial")]
    Apply(super::apply::Args),
    /// Say where the transaction stands and what happens next.
    Status,
    /// Run the policy's checks; after a trial boot, commit or roll back.
    Verify,
    /// Undo the last transaction.
    Rollback,
    /// Print GPUs, NICs, the bridges between them, and what ACS does to each path.
    #[command(
        after_help = "Besides text and json, `--format` takes svg (a picture) and html (a page with the picture, the
paths as a table, and what to do); both work without network and scripts.

Examples:
  gdr-agent topology
  gdr-agent topology --format svg > node.svg
  gdr-agent topology --format html --root ./capture > node.html"
    )]
    Topology,
    /// Show, clear or put back the ACS bits of the ports on GPU-NIC paths.
    #[command(subcommand)]
    Acs(super::acs::Verb),
    /// Print for each boot entry the arguments that it will boot with, and where each is written.
    #[command(after_help = "Examples:
  gdr-agent cmdline                 the running line, and the entry that boots by default
  gdr-agent cmdline --all           every entry
  gdr-agent cmdline --format json | jq '.entries[] | select(.default).arguments'")]
    Cmdline(super::cmdline::Args),
    /// Say from NCCL's logs whether GPUDirect RDMA is engaged, per rank, HCA and channel, and why not.
    #[command(
        after_help = "The channel records decide (`via NET/IB/0/GDRDMA`). A job that prints them and the reasons:
  NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET,GRAPH

Examples:
  gdr-agent nccl-log job.log
  srun ... 2>&1 | tee job.log | gdr-agent nccl-log -
  gdr-agent nccl-log logs/ old.log.zst
  gdr-agent nccl-log --format json *.log | jq -r '.files[] | .name + \" \" + .verdict'

The exit code tells whether the files could be read, not what the answer is."
    )]
    NcclLog(super::nccl_log::Args),
    /// Print metrics for Prometheus, or write them for the textfile collector of node_exporter.
    #[command(after_help = "Examples:
  gdr-agent metrics
  gdr-agent metrics --textfile /run/gdr-agent/metrics.prom")]
    Metrics(super::metrics::Args),
    /// Print the JSON schemas of all JSON output.
    Schema {
        /// One output only, such as `plan`.
        name: Option<String>,
    },
    /// What the units call.
    #[command(subcommand, hide = true)]
    Boot(super::boot::Verb),
}
