//! The library preloaded into real programs: are stacks right, are all threads seen, does the program notice nothing?

#![allow(missing_docs, unreachable_pub)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod endings;
mod programs;
mod stacks;
mod support;
