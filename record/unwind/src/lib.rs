//! Call stacks of threads from copies of their registers and stacks.
//!
//! **In**: the registers of a thread in user mode and the bytes of its stack from the stack pointer
//! upwards ([`Registers`], [`StackCopy`]); the ELF file that each address belongs to ([`Code`]).
//! **Out**: return addresses, innermost first, and how the chain ended ([`End`]). **Promise**:
//! nothing is read but the copy and the unwind tables. Whatever the bytes are, unwinding ends after
//! at most the wanted number of frames, without a panic, and yields only addresses that the caller
//! has declared executable.
//!
//! [`Module`] reads `.eh_frame` of a file; [`Unwinder`] follows a stack by rules of 64 bits
//! (`rule`), which suffice for nearly all frames and are cached by address, since a program has few
//! hot call sites. Functions without tables (Go, code compiled at run time) are followed by frame
//! pointers.
//!
//! **Why not a library**: framehop keeps only the stack and frame pointers and evaluates no
//! expression that reads memory, so it loses the stack at signal handlers and at functions that
//! realign their stacks (measured in docs/reference/record-stacks.md); others read live memory.
//! gimli parses the tables.
//!
//! x86-64 only: recorders of other machines take frame pointers in the kernel.

mod cache;
mod expression;
mod frame;
mod module;
mod rule;
mod stack;
mod tables;
mod walk;

pub use frame::Frame;
pub use module::{Module, ModuleError};
pub use rule::Registers;
pub use stack::StackCopy;
pub use walk::{Code, End, Unwinder};
