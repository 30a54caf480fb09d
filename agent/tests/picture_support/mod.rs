//! Made-up servers to draw, and a reader of drawings.
#![allow(dead_code)]

pub mod page;
pub mod servers;
