//! The reports: count, cpu, io.
