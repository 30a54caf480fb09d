//! What `grub-mkconfig` does on the made-up machine: read `/etc/default/grub` as the shell script that
//! it is, look which kernels and which scripts there are, write the menu.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use super::family::Family;
use super::grub_cfg::Menu;
use super::tree::{Tree, TreeError};

/// Why no menu was written.
#[derive(Debug, thiserror::Error)]
pub enum MkconfigError {
    /// A file of the made-up machine.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// No shell on the machine that runs the tests.
    #[error("starting sh to read /etc/default/grub: {0}")]
    Shell(std::io::Error),
    /// The real `grub-mkconfig` gives up too when one of these files fails.
    #[error(
        "/etc/default/grub or a file in /etc/default/grub.d ended with status {status}: {said}"
    )]
    Defaults {
        /// Exit status of the shell.
        status: i32,
        /// Its standard error.
        said: String,
    },
}

/// The scripts in `/etc/grub.d` that may be executed, in order.
pub(super) fn scripts(tree: &Tree) -> Result<Vec<String>, TreeError> {
    use std::os::unix::fs::PermissionsExt;
    let mut scripts = tree.names("etc/grub.d")?;
    scripts.retain(|name| {
        std::fs::metadata(tree.at(&format!("etc/grub.d/{name}")))
            .is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0)
    });
    Ok(scripts)
}

/// The menu that `update-grub` would write now.
pub fn menu(tree: &Tree) -> Result<Menu, MkconfigError> {
    let values = defaults(tree)?;
    let value = |at: usize, default: &str| match values.get(at) {
        Some(text) if !text.is_empty() => text.clone(),
        _ => default.to_owned(),
    };
    let mut kernels: Vec<String> = tree
        .names("boot")?
        .iter()
        .filter_map(|name| name.strip_prefix("vmlinuz-").map(str::to_owned))
        .collect();
    kernels.sort_by_key(|kernel| std::cmp::Reverse(version_key(kernel)));
    Ok(Menu {
        default: value(0, "0"),
        timeout: value(1, "5"),
        cmdline: value(2, ""),
        cmdline_default: value(3, ""),
        kernels,
        scripts: scripts(tree)?,
    })
}

/// Writes the menu to `path` on the made-up machine; `None` is the one that GRUB reads.
pub fn regenerate(tree: &Tree, path: Option<&str>) -> Result<(), MkconfigError> {
    let text = menu(tree)?.text();
    let own = format!("{}/grub.cfg", Family::of(tree).grub_dir());
    let path = path.unwrap_or(&own);
    // the real one ends with mode 0444 and writes as root, who does not mind
    if tree.exists(path) {
        tree.mode(path, 0o644)?;
    }
    tree.file(path, text)?;
    Ok(tree.mode(path, 0o444)?)
}

/// Values of the four variables that make a difference here.
fn defaults(tree: &Tree) -> Result<Vec<String>, MkconfigError> {
    // As grub-mkconfig: a shell that stops at the first error, the file, then drop-ins, which only Debian's reads.
    let script = r#"
        set -e
        cd "$1"
        if [ -f etc/default/grub ]; then . ./etc/default/grub; fi
        if [ "$2" = debian ]; then
            for x in etc/default/grub.d/*.cfg; do
                if [ -e "$x" ]; then . "./$x"; fi
            done
        fi
        printf '%s\n' "$GRUB_DEFAULT" "$GRUB_TIMEOUT" "$GRUB_CMDLINE_LINUX" "$GRUB_CMDLINE_LINUX_DEFAULT"
    "#;
    let output = Command::new(Family::of(tree).shell())
        // bash follows POSIX where it is called so.
        .arg0("sh")
        .arg("-c")
        .arg(script)
        .arg("grub-mkconfig")
        .arg(tree.root())
        .arg(if Family::of(tree) == Family::Debian {
            "debian"
        } else {
            "other"
        })
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("LC_ALL", "C")
        // the made-up machine has no /dev/null
        .stdin(Stdio::inherit())
        .output()
        .map_err(MkconfigError::Shell)?;
    if !output.status.success() {
        return Err(MkconfigError::Defaults {
            status: output.status.code().unwrap_or(-1),
            said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(str::to_owned)
        .collect())
}

/// Numbers compare as numbers; enough for the kernels that a sample node has.
pub(super) fn version_key(version: &str) -> Vec<(u64, String)> {
    version
        .split(['.', '-'])
        .map(|part| (part.parse().unwrap_or(0), part.to_owned()))
        .collect()
}
