//! The policy that a new user starts from.

/// A commented policy that names every key with its default, and why it is there.
pub fn starter() -> &'static str {
    include_str!("starter.toml")
}
