//! Analyses that users define: which event records change which attributes.
//!
//! A definition is a file ([`Definition::parse`]): TOML (`rule_file`), or the common part of Trace
//! Compass's XML ([`xml`]). Both become the same form (`definition`): rules, each with an
//! expression that selects event records and the steps to take. [`plan`] evaluates for each event
//! class whatever the metadata determines, and chooses the values to keep. Chunks keep these
//! values; the [`machine`], which knows the values of attributes, plays them in the order of time
//! before a slice is passed on. Rules that read no attribute could be folded in parallel, but the
//! same definition would then be executed in two ways, and playing takes less time than finding the
//! event records.
//!
//! Attributes are numbered when their paths first occur in the order of time, so the numbers do not
//! depend on chunks. Values of an attribute may be numbers and texts, which their codes distinguish
//! (`Form::Any`). Checkpoints list the state in the order of keys, so that their bytes depend on
//! the state only.
//!
//! `docs/reference/user-analyses.md` describes both forms.

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
pub(crate) use machine::{UserMachine, put};
pub(crate) use partial::Partial;
pub(crate) use plan::{Follows, Plan};
pub(crate) use probes::{names_thread, with_probes};
