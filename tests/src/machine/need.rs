//! What a test needs, and what happens where it is missing: a line that nobody can overlook, or a failure in CI.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Error, Image, Variant};

/// The plain machine's image for the test `name`, or `None` when the test has to be skipped.
///
/// # Errors
/// In CI (`CI=true`), whatever is missing.
pub fn plain_image(name: &str) -> Result<Option<Image>, Error> {
    image_of(Variant::of(SUITE), name)
}

/// The Debian that scenarios run on unless they need another.
pub const SUITE: &str = "trixie";

/// The plain machine's image of one of the Debians.
///
/// # Errors
/// As [`plain_image`].
pub fn image_of(variant: Variant, name: &str) -> Result<Option<Image>, Error> {
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    if qemu.is_err() {
        return missing(name, "QEMU is not installed: run scripts/vm/build");
    }
    match Image::plain(variant)? {
        Some(image) => Ok(Some(image)),
        None => {
            let Variant { suite, with } = variant;
            let why = format!(
                "there is no machine image: run GDR_VM_SUITE={suite} GDR_VM_WITH={with} scripts/vm/build"
            );
            missing(name, &why)
        }
    }
}

/// The same with the agent that `GDR_AGENT_BIN` names, or else the release build of this workspace.
///
/// # Errors
/// In CI, whatever is missing; and an agent that cannot be installed, anywhere.
pub fn agent_image(name: &str) -> Result<Option<Image>, Error> {
    agent_image_of(SUITE, name)
}

/// The same on another Debian.
///
/// # Errors
/// As [`agent_image`].
pub fn agent_image_of(suite: &'static str, name: &str) -> Result<Option<Image>, Error> {
    let Some(image) = image_of(Variant::of(suite), name)? else {
        return Ok(None);
    };
    let Some(binary) = agent_binary() else {
        return missing(
            name,
            "there is no agent: run cargo build --release, or set GDR_AGENT_BIN",
        );
    };
    image.with_agent(&binary).map(Some)
}

/// The Debian package of the agent to test, as `cargo xtask dist` makes it.
///
/// # Errors
/// In CI, that there is none, or one that is older than the agent.
pub fn agent_package(name: &str) -> Result<Option<PathBuf>, Error> {
    const MAKE: &str = "run cargo xtask dist";
    let Some(binary) = agent_binary() else {
        return missing(name, &format!("there is no agent: {MAKE}"));
    };
    let age = |path: &Path| path.metadata().and_then(|m| m.modified()).ok();
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/dist");
    let packages = std::fs::read_dir(&dist)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "deb"));
    match packages.max_by_key(|path| age(path)) {
        Some(package) if age(&package) >= age(&binary) => Ok(Some(package)),
        Some(package) => {
            let package = package.display();
            missing(name, &format!("{package} is older than the agent: {MAKE}"))
        }
        None => missing(name, &format!("no package in {}: {MAKE}", dist.display())),
    }
}

/// The agent to test.
fn agent_binary() -> Option<PathBuf> {
    let given = std::env::var_os("GDR_AGENT_BIN").map(PathBuf::from);
    let built = || {
        // target/PROFILE/deps/TEST: the same target folder as this test's own.
        let test = std::env::current_exe().ok()?;
        Some(test.ancestors().nth(3)?.join("release/gdr-agent"))
    };
    given
        .or_else(built)
        .filter(|path: &PathBuf| Path::is_file(path))
}

fn missing<T>(name: &str, why: &str) -> Result<Option<T>, Error> {
    if std::env::var_os("CI").is_some_and(|ci| ci == "true") {
        return Err(Error::Script {
            script: format!("test {name}"),
            stderr: why.to_owned(),
        });
    }
    // Not eprintln: the test runner keeps what a passing test prints to itself.
    let _ = writeln!(
        std::io::stderr(),
        "\nSKIPPED, NOT TESTED: machine test {name}: {why}\n"
    );
    Ok(None)
}
