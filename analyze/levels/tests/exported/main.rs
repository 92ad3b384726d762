//! Lines of super-traces for export.

mod small;
mod truth;
