//! `cargo xtask dist`: both packages and the Ansible collection, the same bytes each time.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failed, elf, generate};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where the packages go.
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    out: PathBuf,
    /// A program that is built already; `GDR_AGENT_BIN` names it too. Otherwise it is built.
    #[arg(long, value_name = "FILE", env = "GDR_AGENT_BIN")]
    binary: Option<PathBuf>,
    /// The packages' version.
    #[arg(long, value_name = "VERSION", default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
}

/// The time that everything in the packages bears.
#[derive(Debug)]
pub struct Stamp {
    /// Seconds since 1970.
    pub epoch: String,
    /// Its day, as 2026-11-30.
    pub day: String,
}

impl Stamp {
    /// `SOURCE_DATE_EPOCH`, or the time of the last commit.
    ///
    /// # Errors
    /// There is neither.
    pub fn read() -> Result<Self, Failed> {
        let epoch = match env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => output(Command::new("git").args(["log", "-1", "--format=%ct"]))
                .map_err(|e| format!("{e}; without git, set SOURCE_DATE_EPOCH"))?,
        };
        let day = output(Command::new("date").args(["-u", "-d", &format!("@{epoch}"), "+%F"]))?;
        Ok(Self { epoch, day })
    }
}

/// # Errors
/// A tool is missing or fails.
pub fn run(args: &Args) -> Result<(), Failed> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .ok_or("no repository")?;
    let stamp = Stamp::read()?;
    let binary = match &args.binary {
        Some(path) => path.clone(),
        None => build(repository)?,
    };
    let arch = elf::arch(&binary)?;
    fs::create_dir_all(&args.out)?;
    let work = args.out.join("work");
    if work.exists() {
        fs::remove_dir_all(&work)?;
    }
    generate::all(&work.join("generated"), &stamp.day)?;
    let builder = |kind: &str| {
        let mut command = Command::new(repository.join("packaging").join(kind).join("build"));
        command
            .env("SOURCE_DATE_EPOCH", &stamp.epoch)
            .env("PACKAGE_VERSION", &args.version)
            .env("LC_ALL", "C");
        command
    };
    for (kind, arch) in [("deb", arch.deb), ("rpm", arch.rpm)] {
        let mut build = builder(kind);
        build.args([&binary, &work, &args.out]);
        finish(build.env("PACKAGE_ARCH", arch), kind)?;
    }
    finish(builder("collection").arg(&args.out), "collection")?;
    fs::remove_dir_all(&work)?;
    Ok(())
}

fn finish(build: &mut Command, kind: &str) -> Result<(), Failed> {
    let done = build
        .status()
        .map_err(|e| format!("the {kind} could not be built: {e}"))?;
    if !done.success() {
        return Err(format!("the {kind} could not be built").into());
    }
    Ok(())
}

/// The program as it ships.
fn build(repository: &Path) -> Result<PathBuf, Failed> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let status = Command::new(cargo)
        .args(["build", "--release", "--locked", "--package", "gdr-agent"])
        .current_dir(repository)
        .status()?;
    if !status.success() {
        return Err("the program could not be built".into());
    }
    let target = env::var_os("CARGO_TARGET_DIR").map_or(repository.join("target"), PathBuf::from);
    Ok(target.join("release/gdr-agent"))
}

fn output(command: &mut Command) -> Result<String, Failed> {
    let done = command.output()?;
    if !done.status.success() {
        let program = command.get_program().to_string_lossy().into_owned();
        return Err(format!(
            "{program}: {}",
            String::from_utf8_lossy(&done.stderr).trim()
        )
        .into());
    }
    Ok(String::from_utf8(done.stdout)?.trim().to_owned())
}
