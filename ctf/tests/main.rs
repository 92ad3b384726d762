//! Tests of the whole crate in a single program, since each program takes a second to link.
//!
//! `damage_limits` is a separate program, since it measures the peak memory of its process.

mod archives;
mod conformance_streams;
mod ctf2_accepted;
mod ctf2_conformance;
mod ctf2_rejected;
mod damage;
mod far_times;
mod foreign_uuid;
mod formats;
mod formats_real;
mod formats_rules;
mod formats_support;
mod layouts;
mod nesting;
mod nesting_classes;
mod packet_size;
mod packetized_metadata;
mod removed_files;
mod tsdl_conformance;
mod tsdl_limits;
mod tsdl_schema;
mod write_lttng;
mod write_metadata;
mod write_streams;
mod wrong_index;
