//! Generated recordings of programs that are scheduled twice: kernel threads (LWPs) by the kernel,
//! user-level threads on LWPs by the program.
//!
//! [`LevelScript`] simulates both schedulers and writes a kernel trace and a user trace for each
//! process; [`LevelTruth`] holds what happened: the user-level thread, the LWP and the CPU of every
//! event record, and the states of every user-level thread. [`merge`] establishes the same from the
//! traces alone, by plain passes: the model of the merge.

mod kernel_acts;
mod kernel_names;
mod level_shape;
mod level_streams;
mod level_tracer;
mod level_truth;
mod model_merge;
mod model_reactions;
mod script;
mod super_acts;
mod super_records;
mod user_acts;

pub use level_shape::LevelShape;
pub use level_truth::{
    CallTruth, Duty, LevelTruth, Owner, RecordTruth, UserLevelLife, UserLevelState,
    UserLevelStretch,
};
pub use model_merge::{Merged, MergedRecord, UNKNOWN, merge};
pub use model_reactions::{ModelReaction, reactions};
pub use script::{LevelScript, LevelTraces, record};
pub use super_records::{SuperRecord, super_records};
