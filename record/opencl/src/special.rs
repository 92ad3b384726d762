//! Functions that do more than record: they switch profiling on and hide it, and learn the names
//! of kernels.

#![allow(unsafe_code, non_snake_case)]

use core::mem::size_of;
use core::ptr;

use crate::functions;
use crate::handles::Handles;
use crate::next::own;
use crate::status::{INVALID_VALUE, PROFILING_INFO_NOT_AVAILABLE};
use crate::told::PROFILING;
use crate::{commands, extensions, told, values};

const QUEUE_PROPERTIES: u32 = 0x1093;
const QUEUE_PROPERTIES_ARRAY: u32 = 0x1098;
const EVENT_COMMAND_QUEUE: u32 = 0x11D0;
const EVENT_REFERENCE_COUNT: u32 = 0x11D2;

/// Queues whose profiling this library has switched on.
static HIDDEN: Handles<{ 1 << 15 }> = Handles::new();
/// Those of them to which it has added the property, with which they were created.
static APPENDED: Handles<{ 1 << 15 }> = Handles::new();

/// True if functions of this module must be called although nothing is recorded.
#[inline(always)]
pub(crate) fn is_needed() -> bool {
    HIDDEN.is_used() || commands::are_recorded() || told::is_used()
}

/// True if the program does not know that a queue is profiled.
pub(crate) fn is_hidden(queue: usize) -> bool {
    HIDDEN.has(queue)
}

/// Creates a queue: by `profiled`, with profiling and whether that adds a property; or else by
/// `plain`, since not every device allows profiling.
fn create(
    profiled: Option<(impl FnOnce() -> usize, bool)>,
    plain: impl FnOnce() -> usize,
) -> usize {
    if let Some((profiled, is_appended)) = profiled {
        let queue = profiled();
        if queue != 0 && created(queue, true, is_appended) {
            return queue;
        }
        // The program would see the profiling.
        release(queue);
    }
    let queue = plain();
    let _ = created(queue, false, false);
    queue
}

/// Releases a queue that the program does not get.
fn release(queue: usize) {
    if queue != 0
        && let Some(release) = own!(clReleaseCommandQueue)
    {
        HIDDEN.remove(queue);
        APPENDED.remove(queue);
        // SAFETY: the queue was just created.
        unsafe { release(queue) };
    }
}

/// Notes how a queue was created; false if there is no room to hide it.
fn created(queue: usize, is_hidden: bool, is_appended: bool) -> bool {
    let mut has_room = true;
    if queue == 0 {
        return has_room;
    }
    for (set, is_in) in [(&HIDDEN, is_hidden), (&APPENDED, is_appended)] {
        // The handle may have been that of another queue.
        while set.remove(queue) {}
        has_room &= !is_in || set.add(queue);
    }
    if has_room {
        told::new_queue(queue);
    }
    has_room
}

/// # Safety
/// As OpenCL's function; here and below, `next` is that function.
pub(crate) unsafe fn clCreateCommandQueue(
    next: functions::clCreateCommandQueue::Function,
    context: usize,
    device: usize,
    properties: u64,
    errcode_ret: usize,
) -> usize {
    // SAFETY: as required of the program.
    let with = |properties| unsafe { next(context, device, properties, errcode_ret) };
    let add = commands::are_recorded() && properties & PROFILING == 0;
    let profiled = add.then_some((|| with(properties | PROFILING), false));
    create(profiled, || with(properties))
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clCreateCommandQueueWithProperties(
    next: functions::clCreateCommandQueueWithProperties::Function,
    context: usize,
    device: usize,
    properties: usize,
    errcode_ret: usize,
) -> usize {
    // SAFETY: as required of the program.
    let with = |properties: usize| unsafe { next(context, device, properties, errcode_ret) };
    let list = match commands::are_recorded() {
        // SAFETY: as required of the program.
        true => Profiled::of(unsafe { values::list(properties, 2) }),
        false => None,
    };
    let profiled = list
        .as_ref()
        .map(|of| (|| with(of.list.as_ptr() as usize), of.is_appended));
    create(profiled, || with(properties))
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clCreateCommandQueueWithPropertiesKHR(
    next: functions::clCreateCommandQueueWithPropertiesKHR::Function,
    context: usize,
    device: usize,
    properties: usize,
    errcode_ret: usize,
) -> usize {
    // SAFETY: as required of the program. Both functions have the same type.
    unsafe { clCreateCommandQueueWithProperties(next, context, device, properties, errcode_ret) }
}

/// Maximum number of values of a changed list, with the 0 at its end.
const MOST_PROPERTIES: usize = 64;

/// Properties of a queue, with profiling.
struct Profiled {
    list: [u64; MOST_PROPERTIES],
    is_appended: bool,
}

impl Profiled {
    /// `None` if the list has profiling already, or is too long.
    fn of(pairs: &[u64]) -> Option<Profiled> {
        if pairs.len() + 3 > MOST_PROPERTIES {
            return None;
        }
        let mut list = [0; MOST_PROPERTIES];
        list.iter_mut()
            .zip(pairs)
            .for_each(|(to, from)| *to = *from);
        let place = pairs
            .chunks(2)
            .position(|pair| pair.first() == Some(&u64::from(QUEUE_PROPERTIES)));
        match place {
            Some(pair) => {
                let bits = list.get_mut(2 * pair + 1)?;
                if *bits & PROFILING != 0 {
                    return None;
                }
                *bits |= PROFILING;
            }
            None => {
                let end = list.get_mut(pairs.len()..pairs.len() + 2)?;
                end.copy_from_slice(&[u64::from(QUEUE_PROPERTIES), PROFILING]);
            }
        }
        Some(Profiled {
            list,
            is_appended: place.is_none(),
        })
    }
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clSetCommandQueueProperty(
    next: functions::clSetCommandQueueProperty::Function,
    queue: usize,
    properties: u64,
    enable: u32,
    old_properties: usize,
) -> i32 {
    let was_hidden = is_hidden(queue);
    let changes_profiling = properties & PROFILING != 0;
    // A recorded queue stays profiled.
    let keeps = changes_profiling && enable == 0 && (was_hidden || commands::are_recorded());
    let passed = match keeps {
        true => properties & !PROFILING,
        false => properties,
    };
    // SAFETY: as required of the program.
    let status = unsafe { next(queue, passed, enable, old_properties) };
    if status != 0 {
        return status;
    }
    if was_hidden && old_properties != 0 {
        // SAFETY: the function wrote the properties.
        unsafe {
            values::set(
                old_properties,
                values::out::<u64>(old_properties) & !PROFILING,
            )
        };
    }
    if changes_profiling && enable != 0 {
        HIDDEN.remove(queue);
    }
    if keeps && !was_hidden {
        HIDDEN.add(queue);
    }
    status
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clGetCommandQueueInfo(
    next: functions::clGetCommandQueueInfo::Function,
    queue: usize,
    name: u32,
    size: usize,
    value: usize,
    size_ret: usize,
) -> i32 {
    // SAFETY: as required of the program.
    unsafe {
        if name == QUEUE_PROPERTIES_ARRAY && is_hidden(queue) {
            return properties_array(next, queue, (size, value, size_ret));
        }
        let status = next(queue, name, size, value, size_ret);
        if status == 0 && name == QUEUE_PROPERTIES && value != 0 && is_hidden(queue) {
            values::set(value, values::out::<u64>(value) & !PROFILING);
        }
        status
    }
}

/// The properties with which the program created a queue.
///
/// # Safety
/// As OpenCL's function.
unsafe fn properties_array(
    next: functions::clGetCommandQueueInfo::Function,
    queue: usize,
    (size, value, size_ret): (usize, usize, usize),
) -> i32 {
    let mut list = [0_u64; MOST_PROPERTIES];
    let mut bytes = 0_usize;
    let room = size_of::<[u64; MOST_PROPERTIES]>();
    let (to, to_bytes) = (list.as_mut_ptr() as usize, &raw mut bytes as usize);
    // SAFETY: there is room for as many bytes.
    let status = unsafe { next(queue, QUEUE_PROPERTIES_ARRAY, room, to, to_bytes) };
    if status != 0 {
        return status;
    }
    let count = (bytes / size_of::<u64>()).min(MOST_PROPERTIES);
    let count = without_profiling(&mut list[..count], APPENDED.has(queue));
    let bytes = count * size_of::<u64>();
    // SAFETY: as required of the program.
    unsafe {
        if value != 0 {
            if size < bytes {
                return INVALID_VALUE;
            }
            ptr::copy_nonoverlapping(list.as_ptr().cast::<u8>(), value as *mut u8, bytes);
        }
        values::set(size_ret, bytes);
    }
    0
}

/// Removes profiling from a list that ends with 0. Returns the number of its values: 0
/// if the program passed no list.
fn without_profiling(list: &mut [u64], is_appended: bool) -> usize {
    let pairs = list.len().saturating_sub(1);
    let name = u64::from(QUEUE_PROPERTIES);
    let Some(at) = list[..pairs].iter().step_by(2).position(|of| *of == name) else {
        return list.len();
    };
    if !is_appended {
        if let Some(bits) = list.get_mut(2 * at + 1) {
            *bits &= !PROFILING;
        }
        return list.len();
    }
    list.copy_within(2 * at + 2.., 2 * at);
    match list.len().saturating_sub(2) {
        1 => 0,
        count => count,
    }
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clGetEventInfo(
    next: functions::clGetEventInfo::Function,
    event: usize,
    name: u32,
    size: usize,
    value: usize,
    size_ret: usize,
) -> i32 {
    // SAFETY: as required of the program.
    unsafe {
        let hidden = match name {
            EVENT_REFERENCE_COUNT => commands::references(event),
            _ => 0,
        };
        let status = next(event, name, size, value, size_ret);
        if status == 0 && hidden > 0 && value != 0 {
            let seen = values::out::<u32>(value).saturating_sub(hidden);
            values::set(value, seen.max(1));
        }
        status
    }
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clGetEventProfilingInfo(
    next: functions::clGetEventProfilingInfo::Function,
    event: usize,
    name: u32,
    size: usize,
    value: usize,
    size_ret: usize,
) -> i32 {
    // SAFETY: as required of the program.
    unsafe {
        if HIDDEN.is_used() && queue_of(event).is_some_and(is_hidden) {
            return PROFILING_INFO_NOT_AVAILABLE;
        }
        next(event, name, size, value, size_ret)
    }
}

/// The queue of an event.
///
/// # Safety
/// The event exists.
unsafe fn queue_of(event: usize) -> Option<usize> {
    let mut queue = 0_usize;
    let to = &raw mut queue as usize;
    let query = own!(clGetEventInfo)?;
    // SAFETY: the event exists, and there is room for a handle.
    let status = unsafe { query(event, EVENT_COMMAND_QUEUE, size_of::<usize>(), to, 0) };
    (status == 0).then_some(queue)
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clCreateKernel(
    next: functions::clCreateKernel::Function,
    program: usize,
    name: usize,
    errcode_ret: usize,
) -> usize {
    // SAFETY: as required of the program.
    let kernel = unsafe { next(program, name, errcode_ret) };
    told::new_kernel(kernel);
    kernel
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clCloneKernel(
    next: functions::clCloneKernel::Function,
    source: usize,
    errcode_ret: usize,
) -> usize {
    // SAFETY: as required of the program.
    let kernel = unsafe { next(source, errcode_ret) };
    told::new_kernel(kernel);
    kernel
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clCreateKernelsInProgram(
    next: functions::clCreateKernelsInProgram::Function,
    program: usize,
    most: u32,
    kernels: usize,
    count_ret: usize,
) -> i32 {
    // SAFETY: as required of the program.
    unsafe {
        let call = |count_ret| next(program, most, kernels, count_ret);
        new_handles(call, (kernels, most), count_ret, told::new_kernel)
    }
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clCreateSubDevices(
    next: functions::clCreateSubDevices::Function,
    device: usize,
    properties: usize,
    most: u32,
    devices: usize,
    count_ret: usize,
) -> i32 {
    // SAFETY: as required of the program.
    unsafe {
        let call = |count_ret| next(device, properties, most, devices, count_ret);
        new_handles(call, (devices, most), count_ret, told::new_device)
    }
}

/// A call that writes up to `most` new handles to an array, each of which goes to `tell`. The number
/// of handles is asked for even if the program does not want it.
///
/// # Safety
/// As [`values::filled`], after the call.
unsafe fn new_handles(
    call: impl FnOnce(usize) -> i32,
    (handles, most): (usize, u32),
    count_ret: usize,
    tell: impl Fn(usize),
) -> i32 {
    let mut count = 0_u32;
    let to = match count_ret {
        0 => &raw mut count as usize,
        wanted => wanted,
    };
    let status = call(to);
    if status == 0 {
        // SAFETY: as required of the caller.
        let new: &[usize] = unsafe { values::filled(handles, most as usize, to) };
        new.iter().for_each(|handle| tell(*handle));
    }
    status
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clGetExtensionFunctionAddress(
    next: functions::clGetExtensionFunctionAddress::Function,
    name: usize,
) -> usize {
    // SAFETY: as required of the program.
    unsafe { extensions::wrapper(values::text(name), next(name)) }
}

/// # Safety
/// As OpenCL's function.
pub(crate) unsafe fn clGetExtensionFunctionAddressForPlatform(
    next: functions::clGetExtensionFunctionAddressForPlatform::Function,
    platform: usize,
    name: usize,
) -> usize {
    // SAFETY: as required of the program.
    unsafe { extensions::wrapper(values::text(name), next(platform, name)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: u64 = QUEUE_PROPERTIES as u64;

    #[test]
    fn profiling_is_added_once_and_taken_away_again() {
        for (pairs, expected, original) in [
            (&[][..], &[NAME, 2, 0][..], &[][..]),
            (&[NAME, 1], &[NAME, 3, 0], &[NAME, 1, 0]),
            (&[0x1096, 5], &[0x1096, 5, NAME, 2, 0], &[0x1096, 5, 0]),
        ] {
            let profiled = Profiled::of(pairs).expect("a list");
            assert_eq!(&profiled.list[..expected.len()], expected);
            let mut list = expected.to_vec();
            let count = without_profiling(&mut list, profiled.is_appended);
            assert_eq!(&list[..count], original);
        }
        assert!(Profiled::of(&[NAME, 2]).is_none());
        assert!(Profiled::of(&[7; MOST_PROPERTIES - 2]).is_none());
    }
}
