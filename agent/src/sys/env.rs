//! The environment of the process.

/// The value of a variable; none where it is not set or not UTF-8.
#[must_use]
pub fn var(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
