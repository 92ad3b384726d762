//! Names and properties of kernels, queues and devices, recorded before their first use.
//!
//! Caches remember the recorded objects. An object whose entry was replaced is recorded again, which
//! readers must expect.

#![allow(unsafe_code)]

use core::ffi::CStr;

use tracebraid_probe::probe;
use tracebraid_probe::site::Address;

use crate::handles::Handles;
use crate::identity;
use crate::next::own;
use crate::queries::{text, value};

const KERNEL_FUNCTION_NAME: u32 = 0x1190;
const QUEUE_CONTEXT: u32 = 0x1090;
const QUEUE_DEVICE: u32 = 0x1091;
const QUEUE_PROPERTIES: u32 = 0x1093;
const DEVICE_TYPE: u32 = 0x1000;
const DEVICE_PROFILING_TIMER_RESOLUTION: u32 = 0x1025;
const DEVICE_NAME: u32 = 0x102B;
const DEVICE_VERSION: u32 = 0x102F;
const DEVICE_PLATFORM: u32 = 0x1031;
const DEVICE_PARENT_DEVICE: u32 = 0x1042;
const PLATFORM_NAME: u32 = 0x0902;
/// The bit of queues with profiling.
pub(crate) const PROFILING: u64 = 1 << 1;

/// Objects that have been recorded, and how others are.
struct Told<const N: usize> {
    handles: Handles<N>,
    record: fn(usize),
}

static KERNELS: Told<1024> = Told::new(record_kernel);
static QUEUES: Told<256> = Told::new(record_queue);
static DEVICES: Told<64> = Told::new(record_device);

impl<const N: usize> Told<N> {
    const fn new(record: fn(usize)) -> Told<N> {
        Told {
            handles: Handles::new(),
            record,
        }
    }

    /// Records an object that has not been recorded; nothing for 0.
    fn use_of(&self, handle: usize) {
        if handle != 0 && !self.handles.has(handle) {
            self.handles.put(handle);
            (self.record)(handle);
        }
    }

    /// Records a new object, whose handle may have been that of another.
    fn creation_of(&self, handle: usize) {
        self.handles.remove(handle);
        if crate::commands::are_recorded() {
            self.use_of(handle);
        }
    }
}

/// True if handles are remembered, which new objects may get.
#[inline(always)]
pub(crate) fn is_used() -> bool {
    KERNELS.handles.is_used() || QUEUES.handles.is_used() || DEVICES.handles.is_used()
}

/// A command uses this kernel.
pub(crate) fn kernel(kernel: usize) {
    KERNELS.use_of(kernel);
}

/// The program made this kernel.
pub(crate) fn new_kernel(kernel: usize) {
    KERNELS.creation_of(kernel);
}

/// The program made this sub-device.
pub(crate) fn new_device(device: usize) {
    DEVICES.creation_of(device);
}

/// A command uses this queue.
pub(crate) fn queue(queue: usize) {
    QUEUES.use_of(queue);
}

/// The program made this queue.
pub(crate) fn new_queue(queue: usize) {
    QUEUES.creation_of(queue);
}

fn record_kernel(kernel: usize) {
    let query = own!(clGetKernelInfo);
    // SAFETY: the kernel exists, since the program uses it.
    let name = unsafe { text(query, kernel, KERNEL_FUNCTION_NAME) };
    probe!(
        lttng_ust_opencl_arguments,
        kernel_info,
        kernel: Address = Address(kernel as u64),
        function_name: &CStr = name.get()
    );
}

fn record_queue(queue: usize) {
    let query = own!(clGetCommandQueueInfo);
    // SAFETY: the queue exists, since the program uses it; properties have these types.
    let (context, device, properties) = unsafe {
        (
            value::<usize>(query, queue, QUEUE_CONTEXT),
            value::<usize>(query, queue, QUEUE_DEVICE),
            value::<u64>(query, queue, QUEUE_PROPERTIES),
        )
    };
    DEVICES.use_of(device);
    let is_added = crate::special::is_hidden(queue);
    probe!(
        tracebraid_opencl,
        queue,
        queue: Address = Address(queue as u64),
        context: Address = Address(context as u64),
        device: Address = Address(device as u64),
        properties: u64 = if is_added { properties & !PROFILING } else { properties },
        is_profiled: bool = properties & PROFILING != 0
    );
    record_timer(device);
}

fn record_device(device: usize) {
    let query = own!(clGetDeviceInfo);
    // SAFETY: the device exists, since a queue uses it; properties have these types.
    let (name, of_type, resolution, platform, parent) = unsafe {
        (
            text(query, device, DEVICE_NAME),
            value::<u64>(query, device, DEVICE_TYPE),
            value::<usize>(query, device, DEVICE_PROFILING_TIMER_RESOLUTION),
            value::<usize>(query, device, DEVICE_PLATFORM),
            value::<usize>(query, device, DEVICE_PARENT_DEVICE),
        )
    };
    let query = own!(clGetPlatformInfo);
    // SAFETY: the platform is that of a device.
    let platform_name = unsafe { text(query, platform, PLATFORM_NAME) };
    let (uuid, pci) = (identity::uuid(device), identity::pci(device));
    probe!(
        lttng_ust_opencl_devices,
        device_name,
        device: Address = Address(device as u64),
        name: &CStr = name.get()
    );
    probe!(
        tracebraid_opencl,
        device,
        device: Address = Address(device as u64),
        platform: Address = Address(platform as u64),
        parent: Address = Address(parent as u64),
        of_type: u64 = of_type,
        resolution_ns: u64 = resolution as u64,
        platform_name: &CStr = platform_name.get(),
        uuid: &CStr = uuid.get(),
        pci: &CStr = pci.get()
    );
}

/// Records the clocks of device and host at one moment, if the device supports it.
fn record_timer(device: usize) {
    let query = own!(clGetDeviceInfo);
    // SAFETY: the device exists.
    let version = unsafe { text(query, device, DEVICE_VERSION) };
    if !has_timers(version.get().to_bytes()) {
        return;
    }
    let (mut of_device, mut of_host) = (0_u64, 0_u64);
    let (to_device, to_host) = (&raw mut of_device as usize, &raw mut of_host as usize);
    let Some(read) = own!(clGetDeviceAndHostTimer) else {
        return;
    };
    // SAFETY: there is room for both times.
    if unsafe { read(device, to_device, to_host) } == 0 {
        probe!(
            lttng_ust_opencl_devices,
            device_timer,
            device: Address = Address(device as u64),
            device_timestamp: u64 = of_device,
            host_timestamp: u64 = of_host
        );
    }
}

/// True if a version of a device, `OpenCL 3.0 ...`, has the function for timers. The tables of older
/// devices end before it.
fn has_timers(version: &[u8]) -> bool {
    let number = version.strip_prefix(b"OpenCL ");
    number.is_some_and(|number| number.get(..3).is_some_and(|number| number >= &b"2.1"[..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_need_a_device_of_2_1() {
        for (version, expected) in [
            ("OpenCL 3.0 CUDA", true),
            ("OpenCL 2.1 ", true),
            ("OpenCL 2.0 pocl", false),
            ("OpenCL 1.2", false),
            ("OpenCL", false),
            ("", false),
        ] {
            assert_eq!(has_timers(version.as_bytes()), expected, "{version}");
        }
    }
}
