//! Numbers that the BPF programs have too, of `bpf/shared.h`.
#![allow(dead_code)]

include!(concat!(env!("OUT_DIR"), "/shared.rs"));

/// Ids of the event classes of `events.tsdl`, which are kinds of records, by their names.
pub(crate) mod kinds {
    include!(concat!(env!("OUT_DIR"), "/kinds.rs"));
}
