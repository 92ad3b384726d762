//! `libtracebraid_modules.so`: records the modules of a program that is not instrumented, when
//! preloaded.
//!
//! **In**: `LD_PRELOAD`, the session's directory in `TRACEBRAID_SESSION`. **Out**: events with
//! LTTng-UST's names in the trace of the process that `tracebraid_probe` writes, so that the
//! addresses of its functions (`-finstrument-functions`) can be turned into symbols later:
//!
//! | class | fields | meaning |
//! |---|---|---|
//! | `lttng_ust_lib:load` | `baddr`, `memsz`, `path`, `has_build_id`, `has_debug_link` | a module is mapped there |
//! | `lttng_ust_lib:build_id` | `baddr`, `build_id` | its build id |
//! | `lttng_ust_lib:unload` | `baddr` | it has been unmapped |
//!
//! Programs that are not linked with the probe library use the copy in this library.
//!
//! **Promise**: no signal, no thread, no allocation. A module is recorded when its first function
//! is called. After `chroot`, and for programs that are executed in another root, the library
//! removes itself from `LD_PRELOAD` if it does not exist there. It writes to standard error only
//! one line, if the session's directory does not exist.
//!
//! The list of modules is the dynamic loader's, read as debuggers read it (`modules`). `dlopen` is
//! not interposed: called from this library, it would search the RUNPATH of the library instead of
//! the caller's.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod begin;
mod close;
mod elf;
mod exec;
mod memory;
mod modules;
mod next;
mod preload;
mod root;
mod sys;
