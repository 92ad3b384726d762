//! The tests of the reports: one program, because each would take long to build.
#![allow(missing_docs)]

mod bounds;
mod channels;
mod counted;
mod cpu_places;
mod damaged;
mod descriptors;
mod devices;
mod end_mark;
mod files;
mod gpu_jobs;
mod heads;
mod histograms;
mod ids;
mod irq;
mod law;
mod levels;
mod memory;
mod namings;
mod oracle;
mod oracle_devices;
mod oracle_files;
mod oracle_sched;
mod oracle_syscalls;
mod partial;
mod perf;
mod periods;
mod processes;
mod reactions;
mod sched;
mod states;
mod views;
mod waits;
mod wrong_indexes;
