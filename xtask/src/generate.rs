//! The files that packages have and the repository has not: manual pages and completions.

use std::fs;
use std::path::Path;

use clap_complete::Shell;

use crate::{Failed, command, man, policy_man};

/// Writes `man/*.8`, `man/*.5` and `completions/{bash,zsh,fish}` below a directory.
///
/// # Errors
/// A file cannot be written.
pub fn all(to: &Path, date: &str) -> Result<(), Failed> {
    let (pages, completions) = (to.join("man"), to.join("completions"));
    for dir in [&pages, &completions] {
        fs::create_dir_all(dir)?;
    }
    let mut command = command::visible();
    for (name, page) in man::pages(&command, date)? {
        fs::write(pages.join(name), page)?;
    }
    fs::write(pages.join("gdr-agent-policy.5"), policy_man::page(date))?;
    for (shell, name) in [
        (Shell::Bash, "bash"),
        (Shell::Zsh, "zsh"),
        (Shell::Fish, "fish"),
    ] {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "gdr-agent", &mut script);
        fs::write(completions.join(name), script)?;
    }
    Ok(())
}
