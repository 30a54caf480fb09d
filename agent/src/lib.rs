//! The library behind the `gdr-agent` binary. `ARCHITECTURE.md` has the map.

pub mod sys;
