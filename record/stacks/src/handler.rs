//! The signal handler: why it was called, how long the thread was away, and its stack.
//!
//! # Why this is safe in a signal handler
//! - It calls nothing of the C library but plain system calls and `clock_gettime`; it allocates nothing, takes no
//!   lock (what only one may do, the second one leaves), and keeps `errno`.
//! - All signals are blocked in it: it is never nested in itself, and nobody jumps out of it.
//! - It does its work on a stack of its own ([`crate::ground`]): that of the thread may have but some kilobytes left.
//! - It reads of the interrupted thread only what [`crate::memory`] finds readable.
//! - Probes are made to be used in signal handlers.
//!
//! It runs when the kernel goes back to user mode, after the system call that the thread was in has its result:
//! `sigtrap` signals wait for that, and so do those of the kernel recorder.

#![allow(unsafe_code)]

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::local::local;
use crate::modules::Reader;
use crate::options::MOST_DEPTH;
use crate::record::{self, Sample, State};
use crate::rule::{PC, RSP, Registers};
use crate::{chain, ground, memory, process, register, sys, unwind};

/// `sig_data` of our perf events.
pub(crate) const CPU: u64 = 0x7B57_0001;
pub(crate) const WAIT: u64 = 0x7B57_0002;
/// The upper 16 bits of the value that a recorder in the kernel sends; the lower 48 are the nanoseconds of the wait.
pub const KERNEL_WAIT: u64 = 0x7B57;

const TRAP_PERF: i32 = 6;
const SI_KERNEL: i32 = 0x80;
/// The signal was blocked when the event happened: the stack is not that of the event.
const FLAG_ASYNC: u32 = 1;

/// What the handler reads of the options; written before it is installed, and in forked children.
pub(crate) struct Setting {
    pub(crate) threshold_ns: AtomicU64,
    /// The threshold, if each switch sends a signal; else the greatest number: what a thread was away since its last
    /// signal says nothing about one wait.
    limit: AtomicU64,
    pub(crate) depth: AtomicUsize,
    untold: AtomicU32,
    state: [AtomicU64; 3],
}

pub(crate) static SETTING: Setting = Setting {
    threshold_ns: AtomicU64::new(u64::MAX),
    limit: AtomicU64::new(u64::MAX),
    depth: AtomicUsize::new(0),
    untold: AtomicU32::new(0),
    state: [const { AtomicU64::new(0) }; 3],
};

impl Setting {
    /// Notes what the first record of the process will say. `sees_switches`: each switch sends a signal.
    pub(crate) fn tell_later(&self, state: State, sees_switches: bool) {
        let limit = if sees_switches {
            state.threshold_ns
        } else {
            u64::MAX
        };
        self.limit.store(limit, Ordering::Relaxed);
        let errors = u64::from(state.cpu_error as u32) | u64::from(state.wait_error as u32) << 32;
        let kernel = u64::from(state.kernel_time);
        for (place, value) in self.state.iter().zip([state.period_ns, errors, kernel]) {
            place.store(value, Ordering::Relaxed);
        }
        self.threshold_ns.store(state.threshold_ns, Ordering::Relaxed);
        self.depth.store(state.depth as usize, Ordering::Relaxed);
        self.untold.store(1, Ordering::Release);
    }

    /// Records it, once.
    pub(crate) fn tell(&self) {
        if self.untold.load(Ordering::Relaxed) == 0 || self.untold.swap(0, Ordering::Acquire) == 0 {
            return;
        }
        let [period, errors, kernel] = &self.state;
        let errors = errors.load(Ordering::Relaxed);
        record::state(State {
            period_ns: period.load(Ordering::Relaxed),
            threshold_ns: self.threshold_ns.load(Ordering::Relaxed),
            depth: self.depth.load(Ordering::Relaxed) as u32,
            cpu_error: errors as i32,
            wait_error: (errors >> 32) as i32,
            kernel_time: kernel.load(Ordering::Relaxed) != 0,
        });
    }
}

/// Why there is a signal.
#[derive(Clone, Copy, PartialEq)]
enum Cause {
    Cpu,
    /// A context switch; how long the thread was away is not known.
    Switch,
    /// A wait of that many nanoseconds.
    Wait(u64),
    /// Ours, but of no use any more.
    Late,
    /// A recorder in the kernel has heard [`crate::register`].
    Registered,
}

/// The parts of `siginfo_t` that tell. Layout of the kernel's `asm-generic/siginfo.h` on 64 bits.
#[repr(C)]
struct Info {
    signal: i32,
    error: i32,
    code: i32,
    padding: i32,
    address: u64,
    /// `si_perf_data`, or `si_value`.
    data: u64,
    perf_type: u32,
    perf_flags: u32,
}

fn cause(info: &Info) -> Option<Cause> {
    match (info.code, info.data) {
        (TRAP_PERF, CPU | WAIT) if info.perf_flags & FLAG_ASYNC != 0 => Some(Cause::Late),
        (TRAP_PERF, CPU) => Some(Cause::Cpu),
        (TRAP_PERF, WAIT) => Some(Cause::Switch),
        (SI_KERNEL, 0) if register::is_asking() => Some(Cause::Registered),
        (SI_KERNEL, data) if data >> 48 == KERNEL_WAIT => Some(Cause::Wait(data & 0xFFFF_FFFF_FFFF)),
        _ => None,
    }
}

/// The handler of SIGTRAP.
pub(crate) extern "C" fn on_trap(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives both; `Info` is a beginning of what `siginfo_t` is.
    let (about, registers) = unsafe { (&*info.cast::<Info>(), registers(&*context.cast())) };
    let errno = sys::errno();
    match cause(about) {
        Some(Cause::Registered) => {
            register::heard();
            sys::set_errno(errno);
        }
        Some(cause) => {
            let mut task = Task { cause, registers };
            ground::run(work, &mut task);
            sys::set_errno(errno);
        }
        None => {
            sys::set_errno(errno);
            chain::pass_on(signal, info, context);
        }
    }
}

/// Registers by DWARF number; see [`crate::rule`].
fn registers(context: &libc::ucontext_t) -> Registers {
    let saved = &context.uc_mcontext.gregs;
    let get = |index: libc::c_int| saved[index as usize] as u64;
    let mut registers = Registers([0; 17]);
    let order = [
        libc::REG_RAX,
        libc::REG_RDX,
        libc::REG_RCX,
        libc::REG_RBX,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_RBP,
        libc::REG_RSP,
    ];
    for (place, index) in registers.0.iter_mut().zip(order) {
        *place = get(index);
    }
    for (place, index) in registers.0.iter_mut().skip(8).zip(libc::REG_R8..=libc::REG_R15) {
        *place = get(index);
    }
    registers.0[PC] = get(libc::REG_RIP);
    debug_assert_eq!(registers.0[RSP], get(libc::REG_RSP));
    registers
}

struct Task {
    cause: Cause,
    registers: Registers,
}

/// The work, on a stack with room.
fn work(task: &mut Task) {
    if tracebraid_probe::has_ended() {
        process::switch(false);
        return;
    }
    let limit = SETTING.limit.load(Ordering::Relaxed);
    // Three system calls, which are of use only where waits are found here.
    let away = if limit == u64::MAX { None } else { away() };
    let in_syscall = task.registers.0[2] == task.registers.0[PC];
    // A signal that comes while another one is pending is lost: each looks at how long the thread was away.
    let wait = match task.cause {
        Cause::Wait(ns) => Some(ns),
        Cause::Late | Cause::Registered => return,
        Cause::Cpu | Cause::Switch => away
            .filter(|away| away.ns >= limit && (away.is_voluntary || in_syscall))
            .map(|away| away.ns),
    };
    if wait.is_none() && task.cause != Cause::Cpu {
        return;
    }
    let syscall = syscall(&task.registers);
    let mut reader = Reader::enter();
    SETTING.tell();
    reader.refresh();
    let mut frames = [0; MOST_DEPTH];
    let depth = SETTING.depth.load(Ordering::Relaxed).min(MOST_DEPTH);
    let Some(room) = frames.get_mut(..depth) else {
        return;
    };
    // SAFETY: this is the handler; nobody else uses the words meanwhile.
    let known = unsafe { &mut local().stack };
    let (count, end) = unwind::walk(&mut reader, task.registers, known, room);
    let frames = frames.get(..count).unwrap_or_default();
    let sample = Sample { syscall, end, frames };
    if let Some(ns) = wait {
        record::syscall_stack(ns, &sample);
    }
    if task.cause == Cause::Cpu {
        record::cpu_stack(&sample);
    }
}

struct Away {
    /// Time off the CPU since the handler looked last, in nanoseconds.
    ns: u64,
    /// Whether the thread has left the CPU of its own accord since then.
    is_voluntary: bool,
}

/// How long the thread was off its CPU since the last call; `None` at the first.
fn away() -> Option<Away> {
    // SAFETY: this is the handler, or a thread before it has signals.
    let local = unsafe { local() };
    let (now, cpu) = (
        sys::clock(libc::CLOCK_MONOTONIC),
        sys::clock(libc::CLOCK_THREAD_CPUTIME_ID),
    );
    let switches = sys::voluntary_switches();
    let passed = now.wrapping_sub(local.seen_at);
    let away = Away {
        ns: passed.saturating_sub(cpu.wrapping_sub(local.seen_cpu)),
        is_voluntary: switches != local.seen_switches,
    };
    let is_first = local.seen_at == 0;
    (local.seen_at, local.seen_cpu, local.seen_switches) = (now, cpu, switches);
    (!is_first).then_some(away)
}

/// Looks at the time, so that the first wait of this thread is seen. Called when it has no signals yet.
pub(crate) fn look_at_time() {
    // SAFETY: as above.
    unsafe { local().seen_at = 0 };
    away();
}

const NO_SYSCALL: i32 = -1;
const SOME_SYSCALL: i32 = -2;

/// The system call that has just returned: the instruction leaves its own end in rcx. Its number is gone by then, but is
/// nearly always loaded by the instruction before (`mov eax, number`, or `xor eax, eax`).
fn syscall(registers: &Registers) -> i32 {
    let pc = registers.0[PC];
    if registers.0[2] != pc {
        return NO_SYSCALL;
    }
    let mut code = [0; 7];
    if !memory::copy(pc.wrapping_sub(7), &mut code) {
        return SOME_SYSCALL;
    }
    match code {
        [0xB8, a, b, c, d, 0x0F, 0x05] => i32::from_le_bytes([a, b, c, d]),
        [.., 0x31, 0xC0, 0x0F, 0x05] => 0,
        [.., 0x0F, 0x05] => SOME_SYSCALL,
        _ => NO_SYSCALL,
    }
}
