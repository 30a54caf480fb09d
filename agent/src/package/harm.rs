//! What a transaction may not do.

use super::{Change, Installed, Manager, Problem, is_driver, is_kernel, outcome, version};

/// Nothing goes, and neither the driver nor the kernel is changed.
pub(super) fn harmless(
    manager: Manager,
    changes: &[Change],
    installed: &Installed,
) -> Result<(), Problem> {
    let list = |changes: Vec<&Change>| {
        let shown: Vec<String> = changes.iter().map(ToString::to_string).collect();
        shown.join(", ")
    };
    let gone: Vec<&Change> = changes.iter().filter(|c| c.new.is_none()).collect();
    if !gone.is_empty() {
        let message = format!("the transaction would remove packages: {}", list(gone));
        return Err(Problem::new(
            "package.would-remove",
            message,
            outcome::BY_HAND,
        ));
    }
    let touched = |c: &&Change| {
        is_kernel(&c.name) || (is_driver(&c.name) && c.old.is_some() && c.old != c.new)
    };
    let touched: Vec<&Change> = changes.iter().filter(touched).collect();
    if !touched.is_empty() {
        let verb = match touched.iter().any(|c| is_lower(manager, c)) {
            true => "downgrade",
            false => "change",
        };
        let message = format!(
            "the transaction would {verb} the driver or the kernel: {}",
            list(touched)
        );
        let fix = "move the driver or the kernel first, in a window of its own; then this package fits without that";
        return Err(Problem::new("package.would-upgrade", message, fix));
    }
    let held = |c: &&Change| installed.get(&c.name).is_some_and(|package| package.held);
    let held: Vec<&Change> = changes.iter().filter(held).collect();
    if !held.is_empty() {
        let message = format!("the transaction would change what is held: {}", list(held));
        return Err(Problem::new("package.held", message, outcome::UNHOLD));
    }
    Ok(())
}

fn is_lower(manager: Manager, change: &Change) -> bool {
    match (&change.old, &change.new, manager) {
        (Some(old), Some(new), Manager::Apt) => version::dpkg(new, old).is_lt(),
        (Some(old), Some(new), _) => version::rpm(new, old).is_lt(),
        _ => false,
    }
}
