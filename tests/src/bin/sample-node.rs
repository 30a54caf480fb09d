//! Makes and reboots a made-up GPU server in a directory: see `gdr_tests::node`.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a command line tool")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};
use gdr_tests::node::{self, Boot, Cpu, Family, NodeSpec, Reboot, Tree};

/// A made-up GPU server in a directory.
#[derive(Parser)]
#[command(name = "sample-node")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Make one in DIR, which must be new or empty, and boot it once
    Create {
        /// The directory that becomes its root
        dir: PathBuf,
        /// Which server
        #[arg(long, value_enum, default_value = "hgx8")]
        kind: Kind,
        /// PCI functions that it has in all, filled up with devices inside the processors
        #[arg(long, default_value_t = 0)]
        functions: usize,
    },
    /// Firmware, GRUB and kernel start again
    Reboot {
        /// Its root
        dir: PathBuf,
        /// The kernel of a trial boot panics, and the machine starts once more
        #[arg(long)]
        dies: bool,
        /// GRUB cannot write to the disk that grubenv is on
        #[arg(long)]
        read_only: bool,
    },
    /// Do what update-grub does
    Mkconfig {
        /// Its root
        dir: PathBuf,
        /// Where to write, from its root
        #[arg(short, long, default_value = "/boot/grub/grub.cfg")]
        output: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// Eight H100, eight ConnectX-7, two Intel sockets, Debian 12
    Hgx8,
    /// The same with 67 ports: eight more behind each switch, empty
    Hgx8Ports,
    /// The same with AMD CPUs
    Hgx8Amd,
    /// The same in a virtual machine
    Vm,
    /// The same without fast NICs
    NoNic,
    /// The same on a kind of Enterprise Linux 8: boot entries with $kernelopts
    El8,
    /// The same on a kind of Enterprise Linux 9: boot entries, /etc/kernel/cmdline
    El9,
    /// The same on Fedora
    Fedora,
    /// The same on SUSE
    Suse,
}

impl Kind {
    fn spec(self) -> NodeSpec {
        let spec = NodeSpec::default();
        match self {
            Kind::Hgx8 => spec,
            Kind::Hgx8Ports => NodeSpec {
                spare_ports: 8,
                ..spec
            },
            Kind::Hgx8Amd => NodeSpec {
                cpu: Cpu::Amd,
                ..spec
            },
            Kind::Vm => NodeSpec {
                hypervisor: true,
                ..spec
            },
            Kind::NoNic => NodeSpec {
                nics: false,
                ..spec
            },
            Kind::El8 => NodeSpec {
                family: Family::El8,
                ..spec
            },
            Kind::El9 => NodeSpec {
                family: Family::El9,
                ..spec
            },
            Kind::Fedora => NodeSpec {
                family: Family::Fedora,
                ..spec
            },
            Kind::Suse => NodeSpec {
                family: Family::Suse,
                ..spec
            },
        }
    }
}

fn main() -> ExitCode {
    // On the made-up machine this binary has the names of GRUB's tools.
    let mut args = std::env::args();
    let name = args.next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or_default();
    let result = match node::TOOLS.contains(&name) {
        true => tool(name, &args.collect::<Vec<_>>()),
        false => run(Cli::parse().verb),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&*error);
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stderr, reason = "a command line tool")]
fn complain(error: &dyn std::error::Error) {
    eprintln!("sample-node: {error}");
}

fn run(verb: Verb) -> Result<(), Box<dyn std::error::Error>> {
    match verb {
        Verb::Create {
            dir,
            kind,
            functions,
        } => {
            let mut spec = NodeSpec {
                tools: Some(std::env::current_exe()?),
                ..kind.spec()
            };
            if functions > 0 {
                let mut all = node::layout::functions(&spec);
                node::layout::fill(&mut all, functions);
                spec.functions = Some(all);
            }
            show(&node::create(&dir, &spec)?);
        }
        Verb::Reboot {
            dir,
            dies,
            read_only,
        } => {
            let firmware = node::grub::Firmware {
                writable: !read_only,
            };
            for boot in node::reboot(&dir, Reboot { firmware, dies })? {
                show(&boot);
            }
        }
        Verb::Mkconfig { dir, output } => node::regenerate(&Tree::new(&dir), Some(&output))?,
    }
    Ok(())
}

/// What grub-mkconfig, update-grub and grub-script-check do, from inside the made-up machine.
fn tool(name: &str, args: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let machine = Tree::new(Path::new("/"));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match (name, args.as_slice()) {
        ("grub-script-check" | "grub2-script-check", [file]) => {
            node::grub::check(&machine.text(file)?)?;
        }
        ("update-grub", []) => node::regenerate(&machine, None)?,
        ("grub-mkconfig" | "grub2-mkconfig", []) => print!("{}", node::menu(&machine)?.text()),
        ("grub-mkconfig" | "grub2-mkconfig", ["-o" | "--output", file]) => {
            node::regenerate(&machine, Some(file))?;
        }
        _ => return Err(format!("{name}: these arguments are not understood: {args:?}").into()),
    }
    Ok(())
}

/// A few lines as they would come out of a serial port.
fn show(boot: &Boot) {
    for message in &boot.grub.messages {
        println!("GRUB   {message}");
    }
    println!("GRUB   booting `{}'", boot.grub.title);
    println!("Linux  Command line: {}", boot.grub.cmdline);
    match &boot.kernel {
        None => println!("Linux  Kernel panic - not syncing. Rebooting"),
        Some(kernel) => {
            println!("Linux  {}, boot id {}", kernel.release, kernel.boot_id);
            println!(
                "Linux  IOMMU: {}",
                kernel.iommu.group_type().unwrap_or("off")
            );
            println!("Linux  ACS: {} ports", kernel.acs_ports);
        }
    }
}
