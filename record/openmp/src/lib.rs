//! `libtracebraid_openmp.so`: records the scheduling of OpenMP programs.
//!
//! **In**: callbacks of an OpenMP runtime that implements OMPT (OpenMP 5.0, chapter 4), such as
//! LLVM's libomp; the runtime loads the library because `OMP_TOOL_LIBRARIES` names it. **Out**: event
//! records of `tracebraid_probe`: threads of the runtime are LWPs, tasks are user-level threads
//! (`tracebraid_probe::standard`), parallel regions and worksharing constructs are spans, and
//!
//! | class | fields | meaning |
//! |---|---|---|
//! | `tracebraid_openmp:task` | `ult`, `parent`, `codeptr`, `flags` | a task is created by `parent` (0: none); `codeptr` is the return address of the construct, `flags` are those of OMPT (1 initial, 2 implicit, 4 explicit, ...) |
//! | `tracebraid_openmp:cancel` | `ult`, `codeptr`, `flags` | a task cancels a region, or notices a cancellation; `flags` are those of OMPT |
//!
//! # Records
//! - **Tasks**. Each implicit task (the share of one thread in a parallel region) and each explicit
//!   task is a user-level thread, named after the function that contains the construct. The initial
//!   task is the sequential part of the program; it waits (`parallel`) while a region runs. Implicit
//!   tasks are created by the task that encounters the region (`regions`), so that the time until
//!   their threads run them is visible.
//! - **Waits**. A task that waits in the runtime is blocked, and its LWP has switched to 0 even if
//!   it spins: that time belongs to the scheduler. Reasons: `taskwait`, `taskgroup`, `barrier`,
//!   `reduction`, `dependence`, `undeferred` (for a task that runs at once), `critical`, `lock`,
//!   `ordered`, `atomic`, `event` (a detached task), `parallel`.
//! - **Wake-ups** are recorded where a wait ends: OMPT reports only when the runtime has noticed it.
//!   So the library keeps counts of children, of members of task groups, and of what a team's barrier
//!   awaits (`counts`), successors of tasks with dependences (`dependences`), and the waiters of each
//!   mutex (`mutexes`).
//!
//! # Promise
//! Without a session the runtime uses no tool. No value that the program can see changes.
//! Callbacks do not call the program's `malloc`, except once for each construct, and for lists of
//! threads that wait for a mutex.
//!
//! # Facts about libomp (14 to 19)
//! - The end of a worker's last barrier and of its implicit task are reported only when the next
//!   region begins, or at the end of the program. The primary thread therefore records the end of all
//!   implicit tasks of its team.
//! - Barriers at the end of worksharing and of regions have the same kind before version 16; at the
//!   end of a region, `parallel_data` is null.
//! - `parallel_end` passes memory that may belong to another region already.
//! - `omp_test_lock` is reported as `omp_set_lock` before version 16, and never acquires if it fails.
//! - `mutex_released` comes after the release: the next owner can be reported earlier.
//!
//! `target` regions are recorded as the tasks that they are on the host; what devices do is not.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod abi;
mod counts;
mod dependences;
mod functions;
mod lwp;
mod mutexes;
mod names;
mod pool;
mod recorded;
mod regions;
mod scheduling;
mod symbols;
mod task;
mod tool;
mod waits;
mod work;
