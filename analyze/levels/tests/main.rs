//! The merge, on generated recordings of two schedulers whose truth is known.

mod against_truth;
mod damaged;
mod formats;
mod law;
mod support;
