//! Perf events that send a signal to the thread that they happen in, and to no other.
//!
//! `sigtrap` signals are sent by the thread itself when it returns to user mode, by task work: they interrupt no system
//! call, and what a call has to give back is settled by then. `inherit_thread` covers new threads,
//! `remove_on_exec` ends it all before a new program could be killed by a signal it knows nothing of.

#![allow(unsafe_code)]

use crate::sys::{self, Errno};

const TYPE_SOFTWARE: u32 = 1;
const TASK_CLOCK: u64 = 1;
const CONTEXT_SWITCHES: u64 = 3;

const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const INHERIT_THREAD: u64 = 1 << 35;
const REMOVE_ON_EXEC: u64 = 1 << 36;
const SIGTRAP: u64 = 1 << 37;
const FLAG_FD_CLOEXEC: libc::c_ulong = 8;
const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
/// `PERF_EVENT_IOC_ID`.
const IOC_ID: libc::c_ulong = 0x8008_2407;

/// `struct perf_event_attr` as of Linux 5.13 (`PERF_ATTR_SIZE_VER7`).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    configs: [u64; 2],
    branches: u64,
    registers: u64,
    stack: u32,
    clock: i32,
    registers_in_interrupts: u64,
    aux: [u32; 4],
    sig_data: u64,
}

const _: () = assert!(size_of::<Attributes>() == 128);

/// An event that counts for this thread and those that it will start.
#[derive(Clone, Copy)]
pub(crate) struct Event {
    pub(crate) descriptor: libc::c_int,
    pub(crate) id: u64,
}

/// A signal after each `period_ns` of CPU time of a thread, with that spent in the kernel where we are allowed to
/// count that, which `bool` says.
pub(crate) fn task_clock(period_ns: u64, data: u64) -> Result<(Event, bool), Errno> {
    match open(TASK_CLOCK, period_ns, 0, data) {
        Ok(event) => Ok((event, true)),
        Err(_) => open(TASK_CLOCK, period_ns, EXCLUDE_KERNEL | EXCLUDE_HV, data).map(|event| (event, false)),
    }
}

/// A signal after each context switch. Needs CAP_PERFMON or a `perf_event_paranoid` of at most 1.
pub(crate) fn context_switches(data: u64) -> Result<Event, Errno> {
    open(CONTEXT_SWITCHES, 1, 0, data)
}

fn open(config: u64, period: u64, flags: u64, data: u64) -> Result<Event, Errno> {
    let attributes = Attributes {
        kind: TYPE_SOFTWARE,
        size: size_of::<Attributes>() as u32,
        config,
        sample_period: period,
        flags: flags | INHERIT | INHERIT_THREAD | REMOVE_ON_EXEC | SIGTRAP,
        sig_data: data,
        ..Attributes::default()
    };
    // SAFETY: the attributes are as the kernel wants them, for this thread on any CPU and no group.
    let result = unsafe { libc::syscall(libc::SYS_perf_event_open, &attributes, 0, -1, -1, FLAG_FD_CLOEXEC) };
    let low = libc::c_int::try_from(result)
        .ok()
        .filter(|&fd| fd >= 0)
        .ok_or_else(sys::errno)?;
    let descriptor = sys::move_up(low);
    Ok(Event {
        descriptor,
        id: id(descriptor).unwrap_or(0),
    })
}

fn id(descriptor: libc::c_int) -> Option<u64> {
    let mut id = 0_u64;
    // SAFETY: other kinds of files do not know this request and refuse it.
    let result = unsafe { libc::ioctl(descriptor, IOC_ID, &raw mut id) };
    (result == 0).then_some(id)
}

/// Switches an event on or off, in all threads that have inherited it. Whether the descriptor is still that event.
pub(crate) fn switch(event: Event, on: bool) -> bool {
    let is_ours = id(event.descriptor) == Some(event.id);
    if is_ours {
        let request = if on { IOC_ENABLE } else { IOC_DISABLE };
        // SAFETY: a request without argument.
        unsafe { libc::ioctl(event.descriptor, request, 0) };
    }
    is_ours
}

/// In a forked child: gives the parent's event back, if the descriptor is still that.
pub(crate) fn close_inherited(event: Event) {
    if id(event.descriptor) == Some(event.id) {
        sys::close(event.descriptor);
    }
}
