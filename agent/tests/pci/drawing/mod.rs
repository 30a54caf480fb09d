//! Made-up servers to draw, and a reader of drawings.

pub mod page;
pub mod servers;
