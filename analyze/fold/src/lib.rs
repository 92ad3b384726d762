//! The parallel engine: chunk plan, scheduler, associative merge.
