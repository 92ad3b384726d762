//! Typed Linux kernel events, whatever tracer named them.
