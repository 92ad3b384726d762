//! Test tools: a random trace generator and a tool that grows traces.
