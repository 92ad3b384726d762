//! Numbers shared with the BPF programs, from `bpf/shared.h`.
#![allow(dead_code)]

include!(concat!(env!("OUT_DIR"), "/shared.rs"));

/// Ids of the event classes of `events.tsdl` by name, which are kinds of records.
pub(crate) mod kinds {
    include!(concat!(env!("OUT_DIR"), "/kinds.rs"));
}
