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
    /// Ask everything about this node: what is wrong, why, and what to do first. Needs no policy.
    #[command(
        after_help = "What cannot be read is unknown and never counts as met; as root more can be read. With `--policy FILE`
its device selectors are used instead of the default ones.

Examples:
  gdr-agent doctor
  gdr-agent doctor --nccl-log job.log           what the job saw, and what on this node explains it
  gdr-agent doctor --format json | jq -r '.causes[0].id'
  gdr-agent doctor --root ./copy-of-a-node
  gdr-agent doctor --capture node.tar.zst       the same report, anywhere
  gdr-agent doctor --perftest ib_write_bw.txt   is what was measured right, and what on this node explains it
  gdr-agent doctor --format html > node.html    one page to hand on, with the picture of the paths
  gdr-agent doctor --list                       everything that can be asked and found

Exit codes: 0 every required answer is met, 3 one failed or is unknown, 1 a log could not be read."
    )]
    Doctor(super::doctor::Args),
    /// Write the raw files that `doctor` reads into one small archive, without keys and addresses.
    #[command(
        after_help = "Environments are cut down to variables of NCCL and RDMA, secrets are taken out always, addresses and host
names unless `--with-addresses` is given. What could not be read is kept as such. An archive is a tar file that can be
looked through; docs/capture.md has the format.

Examples:
  gdr-agent capture node.tar.zst
  gdr-agent capture node.tar.zst --nccl-log job.log
  gdr-agent doctor --capture node.tar.zst"
    )]
    Capture(super::capture::Args),
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
    /// Measure a GPU-NIC pair with perftest, or read perftest's output, and judge it against host memory.
    #[command(
        after_help = "It runs ib_write_bw or ib_read_bw twice over the same NIC, on host memory and on the GPU's, and compares.
Judged against [verify.bandwidth] min_gbps of the policy, or without one against the link.

Examples:
  gdr-agent bandwidth                                        the first GPU and its nearest NIC, in the node
  gdr-agent bandwidth --gpu 0000:18:00.0 --nic 0000:19:00.0
  gdr-agent bandwidth --listen --gpu BDF --nic BDF           on the other node, first
  gdr-agent bandwidth --gpu BDF --nic BDF --peer node1       then here
  gdr-agent bandwidth --from gpu.log --from host.log         read what was measured before
  ib_write_bw ... 2>&1 | gdr-agent bandwidth --from - --format json

Exit codes: 0 met, or it was read with `--from`; 3 not met, or not known."
    )]
    Bandwidth(super::bandwidth::Args),
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
