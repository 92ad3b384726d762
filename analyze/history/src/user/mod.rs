//! Analyses that users define: which event records change which attributes.
//!
//! A definition is a file ([`Definition::parse`]): TOML ([`toml`]), or the common part of Trace Compass's XML ([`xml`]).
//! Chunks look for the event records that matter and keep the values that rules name ([`plan`]); these go in the order of time
//! through the [`machine`], which knows what attributes are, so that rules may ask. `docs/user-analyses.md` describes both forms.

mod definition;
mod doubts;
mod error;
mod expression;
mod machine;
mod partial;
mod plan;
mod probes;
mod rule_file;
mod template;
mod xml;

pub use definition::Definition;
pub use error::DefinitionError;
pub(crate) use machine::{Machine, put};
pub(crate) use partial::Partial;
pub(crate) use plan::{Follows, Plan};
pub(crate) use probes::{names_thread, with_probes};
