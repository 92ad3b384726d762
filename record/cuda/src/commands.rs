//! Records of CUPTI as events: commands, and what they refer to before their first use.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char};

use tracebraid_probe::probe;
use tracebraid_probe::site::Address;

use crate::layouts::{
    context, device, kernel, memcpy, memcpy_pto_p, memset, stream, synchronization,
    unified_memory_counter as managed,
};
use crate::seen::Seen;
use crate::{flusher, text};

/// Kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    Memcpy = 1,
    Memset = 2,
    Device = 8,
    Context = 9,
    /// A kernel; others may run at the same time.
    Kernel = 10,
    /// A copy between two devices.
    PeerMemcpy = 22,
    ManagedMemory = 25,
    Stream = 37,
    Synchronization = 38,
}

impl Kind {
    fn of(number: u32) -> Option<Kind> {
        let kinds = [
            Kind::Memcpy,
            Kind::Memset,
            Kind::Device,
            Kind::Context,
            Kind::Kernel,
            Kind::PeerMemcpy,
            Kind::ManagedMemory,
            Kind::Stream,
            Kind::Synchronization,
        ];
        kinds.into_iter().find(|kind| *kind as u32 == number)
    }
}

static KERNELS: Seen<1024> = Seen::new();
static STREAMS: Seen<256> = Seen::new();

/// Bit of flags: the program does not wait for the command.
const ASYNCHRONOUS: u32 = 1;

/// Writes a record of CUPTI as an event.
///
/// # Safety
/// The record is one of CUPTI.
pub(crate) unsafe fn record(at: *const u8) {
    // SAFETY: every record begins with its kind, which determines its structure.
    unsafe {
        match Kind::of(kernel::KIND.of(at)) {
            Some(Kind::Kernel) => record_kernel(at),
            Some(Kind::Memcpy) => record_memcpy(at),
            Some(Kind::PeerMemcpy) => record_peer_memcpy(at),
            Some(Kind::Memset) => record_memset(at),
            Some(Kind::Synchronization) => record_synchronization(at),
            Some(Kind::ManagedMemory) => record_managed_memory(at),
            Some(Kind::Device) => record_device(at),
            Some(Kind::Context) => record_context(at),
            Some(Kind::Stream) => record_stream(at),
            None => {}
        }
    }
}

/// A command uses this stream.
fn uses(device: u32, context: u32, stream: u32) {
    if STREAMS.is_new((u64::from(context) << 32 | u64::from(stream)) + 1) {
        probe!(
            tracebraid_cuda,
            stream,
            context: u32 = context,
            stream: u32 = stream,
            device: u32 = device
        );
    }
}

/// Number of a kernel's name, FNV-1a: a program may unload a kernel, whose address another name gets.
fn number_of(name: &CStr) -> u64 {
    name.to_bytes()
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash: u64, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        })
}

/// # Safety
/// As [`record`], of a kernel.
unsafe fn record_kernel(at: *const u8) {
    // SAFETY: as above; the name of a kernel lives as long as its module.
    unsafe {
        let name = text(kernel::NAME.of(at) as *const c_char);
        let number = number_of(name);
        if KERNELS.is_new(number) {
            probe!(
                tracebraid_cuda,
                kernel_name,
                kernel: Address = Address(number),
                name: &CStr = name
            );
        }
        let (device, context) = (kernel::DEVICE_ID.of(at), kernel::CONTEXT_ID.of(at));
        let stream = kernel::STREAM_ID.of(at);
        uses(device, context, stream);
        let grid = [kernel::GRID_X, kernel::GRID_Y, kernel::GRID_Z].map(|of| of.of(at));
        let block = [kernel::BLOCK_X, kernel::BLOCK_Y, kernel::BLOCK_Z].map(|of| of.of(at));
        probe!(
            tracebraid_cuda,
            kernel,
            correlation: u32 = kernel::CORRELATION_ID.of(at),
            kernel: Address = Address(number),
            device: u32 = device,
            context: u32 = context,
            stream: u32 = stream,
            queued: u64 = kernel::QUEUED.of(at),
            submit: u64 = kernel::SUBMITTED.of(at),
            start: u64 = kernel::START.of(at),
            end: u64 = kernel::END.of(at),
            grid_vals: &[u32] = &grid.map(i32::cast_unsigned),
            block_vals: &[u32] = &block.map(i32::cast_unsigned),
            registers: u16 = kernel::REGISTERS_PER_THREAD.of(at),
            static_shared_bytes: i32 = kernel::STATIC_SHARED_MEMORY.of(at),
            dynamic_shared_bytes: i32 = kernel::DYNAMIC_SHARED_MEMORY.of(at),
            graph_node: u64 = kernel::GRAPH_NODE_ID.of(at)
        );
    }
}

/// A copy, whose devices are equal unless it is one between devices.
struct Copied {
    correlation: u32,
    kinds: [u8; 3],
    is_asynchronous: bool,
    device: u32,
    source: u32,
    destination: u32,
    context: u32,
    stream: u32,
    bytes: u64,
    start: u64,
    end: u64,
    graph_node: u64,
}

impl Copied {
    fn record(&self) {
        uses(self.device, self.context, self.stream);
        let [kind, source_kind, destination_kind] = self.kinds;
        probe!(
            tracebraid_cuda,
            memcpy,
            correlation: u32 = self.correlation,
            copy_kind: u8 = kind,
            src_kind: u8 = source_kind,
            dst_kind: u8 = destination_kind,
            is_async: bool = self.is_asynchronous,
            device: u32 = self.device,
            src_device: u32 = self.source,
            dst_device: u32 = self.destination,
            context: u32 = self.context,
            stream: u32 = self.stream,
            bytes: u64 = self.bytes,
            start: u64 = self.start,
            end: u64 = self.end,
            graph_node: u64 = self.graph_node
        );
    }
}

/// # Safety
/// As [`record`], of a copy.
unsafe fn record_memcpy(at: *const u8) {
    // SAFETY: as above.
    let copied = unsafe {
        let device = memcpy::DEVICE_ID.of(at);
        Copied {
            correlation: memcpy::CORRELATION_ID.of(at),
            kinds: [memcpy::COPY_KIND, memcpy::SRC_KIND, memcpy::DST_KIND].map(|of| of.of(at)),
            is_asynchronous: u32::from(memcpy::FLAGS.of(at)) & ASYNCHRONOUS != 0,
            device,
            source: device,
            destination: device,
            context: memcpy::CONTEXT_ID.of(at),
            stream: memcpy::STREAM_ID.of(at),
            bytes: memcpy::BYTES.of(at),
            start: memcpy::START.of(at),
            end: memcpy::END.of(at),
            graph_node: memcpy::GRAPH_NODE_ID.of(at),
        }
    };
    copied.record();
}

/// # Safety
/// As [`record`], of a copy between devices.
unsafe fn record_peer_memcpy(at: *const u8) {
    use memcpy_pto_p as peer;
    // SAFETY: as above.
    let copied = unsafe {
        Copied {
            correlation: peer::CORRELATION_ID.of(at),
            kinds: [peer::COPY_KIND, peer::SRC_KIND, peer::DST_KIND].map(|of| of.of(at)),
            is_asynchronous: u32::from(peer::FLAGS.of(at)) & ASYNCHRONOUS != 0,
            device: peer::DEVICE_ID.of(at),
            source: peer::SRC_DEVICE_ID.of(at),
            destination: peer::DST_DEVICE_ID.of(at),
            context: peer::CONTEXT_ID.of(at),
            stream: peer::STREAM_ID.of(at),
            bytes: peer::BYTES.of(at),
            start: peer::START.of(at),
            end: peer::END.of(at),
            graph_node: peer::GRAPH_NODE_ID.of(at),
        }
    };
    copied.record();
}

/// # Safety
/// As [`record`], of memory that is set.
unsafe fn record_memset(at: *const u8) {
    // SAFETY: as above.
    unsafe {
        let (device, context) = (memset::DEVICE_ID.of(at), memset::CONTEXT_ID.of(at));
        let stream = memset::STREAM_ID.of(at);
        uses(device, context, stream);
        probe!(
            tracebraid_cuda,
            memset,
            correlation: u32 = memset::CORRELATION_ID.of(at),
            device: u32 = device,
            context: u32 = context,
            stream: u32 = stream,
            value: u32 = memset::VALUE.of(at),
            memory_kind: u16 = memset::MEMORY_KIND.of(at),
            bytes: u64 = memset::BYTES.of(at),
            start: u64 = memset::START.of(at),
            end: u64 = memset::END.of(at),
            graph_node: u64 = memset::GRAPH_NODE_ID.of(at)
        );
    }
}

/// # Safety
/// As [`record`], of a synchronization.
unsafe fn record_synchronization(at: *const u8) {
    use synchronization as of;
    // SAFETY: as above.
    unsafe {
        probe!(
            tracebraid_cuda,
            synchronization,
            correlation: u32 = of::CORRELATION_ID.of(at),
            of_type: u32 = of::TYPE.of(at),
            context: u32 = of::CONTEXT_ID.of(at),
            stream: u32 = of::STREAM_ID.of(at),
            cuda_event: u32 = of::CUDA_EVENT_ID.of(at),
            start: u64 = of::START.of(at),
            end: u64 = of::END.of(at)
        );
    }
}

/// # Safety
/// As [`record`], of managed memory.
unsafe fn record_managed_memory(at: *const u8) {
    // SAFETY: as above.
    unsafe {
        probe!(
            tracebraid_cuda,
            unified_memory,
            counter: u32 = managed::COUNTER_KIND.of(at),
            value: u64 = managed::VALUE.of(at),
            address: Address = Address(managed::ADDRESS.of(at)),
            src: u32 = managed::SRC_ID.of(at),
            dst: u32 = managed::DST_ID.of(at),
            stream: u32 = managed::STREAM_ID.of(at),
            pid: u32 = managed::PROCESS_ID.of(at),
            flags: u32 = managed::FLAGS.of(at),
            start: u64 = managed::START.of(at),
            end: u64 = managed::END.of(at)
        );
    }
}

/// # Safety
/// As [`record`], of a device.
unsafe fn record_device(at: *const u8) {
    // SAFETY: as above; the name of a device lives as long as CUPTI.
    unsafe {
        let capability = [
            device::COMPUTE_CAPABILITY_MAJOR.of(at),
            device::COMPUTE_CAPABILITY_MINOR.of(at),
        ];
        probe!(
            tracebraid_cuda,
            device,
            device: u32 = device::ID.of(at),
            name: &CStr = text(device::NAME.of(at) as *const c_char),
            uuid: &[u8] = &device::UUID.of(at),
            capability_major: u32 = capability[0],
            capability_minor: u32 = capability[1],
            multiprocessors: u32 = device::NUM_MULTIPROCESSORS.of(at),
            memory_bytes: u64 = device::GLOBAL_MEMORY_SIZE.of(at)
        );
    }
}

/// # Safety
/// As [`record`], of a context.
unsafe fn record_context(at: *const u8) {
    // SAFETY: as above.
    unsafe {
        let device = context::DEVICE_ID.of(at);
        flusher::has_context(device);
        probe!(
            tracebraid_cuda,
            context,
            context: u32 = context::CONTEXT_ID.of(at),
            device: u32 = device,
            api: u16 = context::COMPUTE_API_KIND.of(at),
            null_stream: u16 = context::NULL_STREAM_ID.of(at)
        );
    }
}

/// # Safety
/// As [`record`], of a stream.
unsafe fn record_stream(at: *const u8) {
    // SAFETY: as above.
    unsafe {
        probe!(
            tracebraid_cuda,
            stream_created,
            context: u32 = stream::CONTEXT_ID.of(at),
            stream: u32 = stream::STREAM_ID.of(at),
            priority: u32 = stream::PRIORITY.of(at),
            flag: u32 = stream::FLAG.of(at),
            correlation: u32 = stream::CORRELATION_ID.of(at)
        );
    }
}
