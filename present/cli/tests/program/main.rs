//! The program as users call it. One binary, which links once.
#![allow(missing_docs)]

mod build_scripts;
mod choices;
mod counts;
mod compare;
mod cpu_fields;
mod critical_path;
mod device_reports;
mod executions;
mod executions_sql;
mod failures;
mod files;
mod filters;
mod foreign_packets;
mod framed_views;
mod functions;
mod help;
mod history;
mod history_analyses;
mod history_append;
mod history_files;
mod hosts;
mod import;
mod info;
mod irq;
mod kept_studies;
mod kernel_reports;
mod memory;
<<<<<<< ours
mod not_recorded;
=======
mod perf_stacks;
>>>>>>> theirs
mod periods;
mod print_generated;
mod print_json;
mod print_nested;
mod print_text;
mod print_written;
mod probes;
mod python_probes;
mod sched;
mod sessions;
mod stacks;
#[path = "../support/mod.rs"]
mod support;
mod sync;
mod syscalls;
mod truths;
mod unknown_names;
mod view;
mod waits;
mod widths;
mod without_switches;
mod wrong_times;
