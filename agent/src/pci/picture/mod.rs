//! The topology as a picture: SVG by itself, or inside a page with the paths as a table.
//!
//! Pure, without fonts, scripts or references to anything outside, and the same bytes for the same
//! topology. Order, places and drawing are apart:
//!
//! ```text
//! Topology -> Outline (what, in which order) -> Places (where) -> Scene (shapes) -> SVG
//! ```

mod advice;
mod crossbar;
mod html;
mod legend;
mod outline;
mod palette;
mod place;
mod scene;
mod state;
mod style;
mod svg;
mod text;

pub use html::html;
pub use svg::svg;
pub(crate) use text::{escaped, printable};
