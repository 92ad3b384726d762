//! Device commands: the four times of each, read when it is complete.
//!
//! A command is observed by its event: the program's, or one of this library's own if the program
//! wants none. In both cases the library has one reference, which the callback releases; so a
//! program that releases its event at once does not destroy it before its times are read. The
//! additional reference to a program's event is hidden from its queries ([`references`]).
//!
//! A callback may run on any thread, also on the calling one and before `clSetEventCallback`
//! returns. It takes no lock and needs no memory of the call.

#![allow(unsafe_code)]

use core::mem::size_of;

use tracebraid_probe::site::Address;
use tracebraid_probe::{Field, Site};

use crate::handles::Handles;
use crate::next::own;
use crate::status::{INVALID_OPERATION, PROFILING_INFO_NOT_AVAILABLE};
use crate::{told, values};

const COMPLETE: i32 = 0;
const QUEUED: u32 = 0x1280;
const SUBMIT: u32 = 0x1281;
const START: u32 = 0x1282;
const END: u32 = 0x1283;

static RESULTS: Site = Site::new(
    "lttng_ust_opencl_profiling:event_profiling_results\0",
    |description| {
        description.field::<Address>("event");
        description.field::<i32>("event_command_exec_status");
        description.field::<i32>("queued_status");
        description.field::<u64>("queued");
        description.field::<i32>("submit_status");
        description.field::<u64>("submit");
        description.field::<i32>("start_status");
        description.field::<u64>("start");
        description.field::<i32>("end_status");
        description.field::<u64>("end");
    },
);

/// Events of programs to which this library has a reference.
static REFERENCES: Handles<{ 1 << 17 }> = Handles::new();

/// True if completions of commands are recorded.
#[inline(always)]
pub(crate) fn are_recorded() -> bool {
    RESULTS.is_enabled()
}

/// Number of references to a program's event that the program must not see.
pub(crate) fn references(event: usize) -> u32 {
    u32::from(REFERENCES.has(event))
}

/// A call that enqueues a command.
pub(crate) struct Command {
    /// Where the program wants the event; 0: nowhere.
    wanted: usize,
    /// An event of this library's own.
    own: usize,
    is_recorded: bool,
    /// The event, if the library observes it, and whether the command is complete.
    observed: Option<(usize, bool)>,
}

impl Command {
    pub(crate) fn begin(queue: usize, kernel: usize, wanted: usize) -> Command {
        let is_recorded = are_recorded();
        if is_recorded {
            told::queue(queue);
            told::kernel(kernel);
        }
        Command {
            wanted,
            own: 0,
            is_recorded,
            observed: None,
        }
    }

    /// Where the function shall write the event.
    pub(crate) fn event(&mut self) -> usize {
        match self.wanted {
            0 if self.is_recorded => &raw mut self.own as usize,
            wanted => wanted,
        }
    }

    /// The event of the command, after the call; 0 without one.
    ///
    /// # Safety
    /// The function succeeded if `has_succeeded`, and then wrote its event.
    pub(crate) unsafe fn end(&mut self, has_succeeded: bool, is_complete: bool) -> usize {
        if !has_succeeded {
            return 0;
        }
        let event = match self.wanted {
            0 => self.own,
            // SAFETY: the function wrote an event.
            wanted => unsafe { values::out(wanted) },
        };
        if self.is_recorded && event != 0 {
            self.observed = Some((event, is_complete));
        }
        event
    }

    /// Observes the command, after the end of the call was recorded: so the records of a command
    /// are in this order.
    pub(crate) fn after(self) {
        let Some((event, is_complete)) = self.observed else {
            return;
        };
        let is_own = self.wanted == 0;
        let own = own!(clSetEventCallback);
        // Found here and not first in a callback, since the dynamic linker takes a lock.
        let _ = (own!(clReleaseEvent), own!(clGetEventProfilingInfo));
        // SAFETY: the event exists: the program or this library has a reference to it.
        unsafe {
            if is_complete {
                record(event, COMPLETE);
                if is_own {
                    release(event);
                }
                return;
            }
            if !is_own && !retain(event) {
                return unobserved(event, INVALID_OPERATION);
            }
            let callback = completed as *const () as usize;
            let status = own.map_or(INVALID_OPERATION, |set| {
                set(event, COMPLETE, callback, usize::from(is_own))
            });
            if status != 0 {
                unobserved(event, status);
                drop_reference(event, is_own);
            }
        }
    }
}

/// Records that the completion of a command cannot be recorded.
fn unobserved(event: usize, status: i32) {
    tracebraid_probe::probe!(
        lttng_ust_opencl_profiling,
        event_profiling,
        status: i32 = status,
        event: Address = Address(event as u64)
    );
}

/// Adds this library's reference to a program's event.
///
/// # Safety
/// The event exists.
unsafe fn retain(event: usize) -> bool {
    // SAFETY: the event exists.
    let retained = own!(clRetainEvent).is_some_and(|retain| unsafe { retain(event) } == 0);
    if retained {
        // Without room the reference is not hidden: a harmless difference.
        REFERENCES.add(event);
    }
    retained
}

/// # Safety
/// This library has a reference to the event.
unsafe fn release(event: usize) {
    if let Some(release) = own!(clReleaseEvent) {
        // SAFETY: as above.
        unsafe { release(event) };
    }
}

/// # Safety
/// This library has a reference to the event.
unsafe fn drop_reference(event: usize, is_own: bool) {
    // SAFETY: as above.
    unsafe { release(event) };
    // In this order, since programs see at least their own reference.
    if !is_own {
        REFERENCES.remove(event);
    }
}

/// The callback of a complete command; `is_own` is not 0 for an event of this library.
unsafe extern "C" fn completed(event: usize, status: i32, is_own: usize) {
    // SAFETY: this library's reference keeps the event until here.
    unsafe {
        record(event, status);
        drop_reference(event, is_own != 0);
    }
}

/// Records the times of a complete command.
///
/// # Safety
/// The event exists.
unsafe fn record(event: usize, status: i32) {
    if !RESULTS.is_enabled() {
        return;
    }
    let read = own!(clGetEventProfilingInfo);
    let times = [QUEUED, SUBMIT, START, END].map(|name| {
        let mut time = 0_u64;
        let place = &raw mut time as usize;
        // SAFETY: there is room for a time.
        let read = read.map_or(PROFILING_INFO_NOT_AVAILABLE, |read| unsafe {
            read(event, name, size_of::<u64>(), place, 0)
        });
        (read, time)
    });
    // The event, its status, and four times with their status.
    const SIZE: usize = 8 + 4 + 4 * (4 + 8);
    if let Some(mut record) = RESULTS.reserve(SIZE) {
        Address(event as u64).write(&mut record);
        status.write(&mut record);
        for (status, time) in times {
            status.write(&mut record);
            time.write(&mut record);
        }
        record.commit();
    }
}
