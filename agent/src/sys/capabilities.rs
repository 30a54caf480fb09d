//! Linux capabilities of this process, capabilities(7).

pub use rustix::thread::CapabilitySet;

/// Gives up whatever is not in `wanted`, for the rest of this process, and returns what of it the process does not have.
///
/// The bounding set stays as it is, so that a package manager or a hook that is started as root is as it would be without this.
/// To be called before there is a second thread: the kernel keeps them apart for each.
///
/// # Errors
/// `capget(2)` or `capset(2)` failed.
pub fn keep(wanted: CapabilitySet) -> std::io::Result<CapabilitySet> {
    let mut sets = rustix::thread::capabilities(None)?;
    let missing = wanted - sets.permitted;
    sets.effective &= wanted;
    sets.permitted &= wanted;
    sets.inheritable &= wanted;
    rustix::thread::set_capabilities(None, sets)?;
    Ok(missing)
}
