//! Begin and end of recording in a program.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_int};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tracebraid_probe::probe;

use crate::calls::{self, DRIVER_API, RESOURCE, RUNTIME_API, STREAM_CREATED};
use crate::commands::Kind;
use crate::cupti::Cupti;
use crate::{buffers, flusher};

/// The oldest version whose records have the fields of [`crate::layouts`]: CUDA 11.0.
const OLDEST: u32 = 13;

/// Records that are taken. Those of a kind that CUPTI refuses are missing.
const KINDS: [Kind; 8] = [
    Kind::Device,
    Kind::Context,
    Kind::Stream,
    Kind::Kernel,
    Kind::Memcpy,
    Kind::PeerMemcpy,
    Kind::Memset,
    Kind::Synchronization,
];

static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
static SUBSCRIBER: AtomicUsize = AtomicUsize::new(0);

/// Called by the driver while a program initializes it.
#[unsafe(no_mangle)]
extern "C" fn InitializeInjection() -> c_int {
    let is_first = !HAS_BEGUN.swap(true, Ordering::AcqRel);
    if is_first && tracebraid_probe::has_session() && !tracebraid_probe::has_ended() {
        match Cupti::load() {
            Ok(cupti) => begin(cupti),
            Err(error) => report(0, c"", error, 0),
        }
    }
    // The result shows the driver that the library works.
    1
}

/// Records what became of CUPTI.
fn report(version: u32, path: &CStr, error: &'static str, status: c_int) {
    probe!(
        tracebraid_cuda,
        recorder,
        cupti_version: u32 = version,
        path: &CStr = path,
        error: &str = error,
        status: i32 = status
    );
}

fn begin(cupti: &'static Cupti) {
    let mut version = 0_u32;
    // SAFETY: there is room for a version.
    unsafe { (cupti.version)(&raw mut version) };
    let report = |error, status| report(version, cupti.path(), error, status);
    let mut subscriber = 0_usize;
    // SAFETY: the callback accepts what CUPTI documents, and stays mapped.
    let status = unsafe { (cupti.subscribe)(&raw mut subscriber, calls::called, ptr::null_mut()) };
    if status != 0 {
        // Another tool, such as a profiler, may have subscribed.
        return report("CUPTI refuses a subscriber", status);
    }
    SUBSCRIBER.store(subscriber, Ordering::Release);
    // 0: CUPTI does not report its version, as in some versions without a device.
    let has_commands = version == 0 || version >= OLDEST;
    let status = if has_commands {
        enable_commands(cupti)
    } else {
        0
    };
    // SAFETY: the subscriber exists.
    unsafe {
        (cupti.enable_domain)(1, subscriber, DRIVER_API);
        (cupti.enable_domain)(1, subscriber, RUNTIME_API);
        (cupti.enable_callback)(1, subscriber, RESOURCE, STREAM_CREATED);
    }
    match status {
        _ if !has_commands => report("CUPTI is older than CUDA 11.0: no commands", 0),
        0 => report("", 0),
        status => report("CUPTI refuses records of kernels", status),
    }
    flusher::start();
}

/// The time of the host's part of records, and the clock to which CUPTI converts the device's times.
extern "C" fn monotonic() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: there is room for a time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Enables the records; returns the status of those of kernels.
fn enable_commands(cupti: &Cupti) -> c_int {
    let mut of_kernels = 0;
    // SAFETY: the functions accept these values at any time before the first command.
    unsafe {
        if let Some(set_clock) = cupti.set_clock {
            set_clock(monotonic);
        }
        (cupti.register)(buffers::requested, buffers::completed);
        if let Some(latency) = cupti.latency {
            latency(1);
        }
        for kind in KINDS {
            let status = (cupti.activity_enable)(kind as u32);
            if kind == Kind::Kernel {
                of_kernels = status;
            }
        }
        if let Some(all_queries) = cupti.all_queries {
            all_queries(0);
        }
    }
    of_kernels
}

/// Enables the records of managed memory. Only once a context exists: CUPTI needs the driver.
pub(crate) fn enable_managed_memory(cupti: &Cupti, device: u32) {
    /// Scope of a single device.
    const SINGLE: u32 = 1;
    /// Bytes to the device, bytes to the host, page faults of the host, page faults of the device.
    const COUNTERS: [u32; 4] = [1, 2, 3, 4];
    let mut wanted = COUNTERS.map(|counter| [SINGLE, counter, device, 1]);
    let Some(configure) = cupti.managed_memory else {
        return;
    };
    // SAFETY: as many configurations as their number states.
    unsafe {
        if configure(wanted.as_mut_ptr(), wanted.len() as u32) == 0 {
            (cupti.activity_enable)(Kind::ManagedMemory as u32);
        }
    }
}

/// Ends recording in a program that continues to run.
pub(crate) fn end(cupti: &Cupti) {
    let subscriber = SUBSCRIBER.swap(0, Ordering::AcqRel);
    if subscriber == 0 {
        return;
    }
    // SAFETY: the subscriber exists, and is used no more.
    unsafe {
        for kind in KINDS {
            (cupti.activity_disable)(kind as u32);
        }
        (cupti.activity_disable)(Kind::ManagedMemory as u32);
        (cupti.unsubscribe)(subscriber);
        // Returns the buffers.
        (cupti.flush)(0);
    }
}
