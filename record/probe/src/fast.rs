//! The fast path as a restartable sequence ([`crate::restart`]).
//!
//! Between the labels `2:` and `3:` the kernel knows that the thread is in the sequence: if a
//! signal is delivered there, or the thread is preempted, it continues at `6:`, and the attempt has
//! no effect. Since only SIGKILL can leave the sequence half done, it needs no compare-exchange,
//! and one store, that of the packet's content, reserves a record with its time and publishes it.
//! Earlier stores write to memory beyond the content, except for the packet's end time, which may
//! be too late but never too early.
//!
//! All values that a handler may change are read within the sequence, the thread-local pointer
//! included: a handler that forks, switches to another user-level thread, or begins another packet
//! leaves no stale value.
//!
//! On a thread that the kernel does not watch (a child of `vfork` in its parent's memory) handlers
//! do not abort the sequence. Such a handler finds the mark still set; its event is then lost, and
//! counted. The mark is removed at the end of the sequence, so that it has only this meaning, and
//! never points to code that has been unloaded.
//!
//! Registers: `rdi` and `rsi` keep the arguments for the slow path. All other registers in use are
//! caller-saved in the C ABI, so nothing is saved on the stack.
//!
//! Safety: the sequence accesses the thread's mark in the kernel's area, the thread's state, and
//! the open packet up to its limit, like [`crate::reserve`]. `limit` is 0 without a packet. If the
//! program has overwritten the packet's content field, the lower half of the value is used, which
//! cannot lead beyond the limit either.

#![allow(unsafe_code)]

use core::mem::offset_of;

use crate::class::Class;
use crate::emit;
use crate::packet::{CONTENT, END, MOST_PAYLOAD, RECORD_HEAD, UNFINISHED};
use crate::restart::MARK;
use crate::thread_state::ThreadState;

/// Reserves a record of a class with `payload` bytes of fields. Null if there is no room or the
/// class is disabled; the caller then has nothing more to do.
#[inline(always)]
pub(crate) fn reserve(class: &Class, payload: usize) -> *mut u8 {
    // SAFETY: the class is a valid reference.
    unsafe { tb_reserve(class, payload) }
}

/// Implementation of [`reserve`], called by C programs directly, because a wrapper would cost a
/// jump.
///
/// # Safety
/// The class is registered, or disabled.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tb_reserve(class: &Class, payload: usize) -> *mut u8 {
    core::arch::naked_asm!(
        // Unwinders from a signal handler need to know that the function has pushed nothing.
        ".cfi_startproc",
        "mov rcx, qword ptr [rip + {mark}]",
        "lea rax, [rip + 7f]",
        "test rcx, rcx",
        "jz {without}",
        "cmp qword ptr fs:[rcx], rax",
        "je {lose}",
        "mov qword ptr fs:[rcx], rax",
        "2:",
        "mov r8, qword ptr [rip + tracebraid_probe_thread@GOTTPOFF]",
        "mov r8, qword ptr fs:[r8]",
        "test r8, r8",
        "jz 5f",
        "mov eax, dword ptr [rdi + {class_epoch}]",
        "cmp eax, dword ptr [r8 + {epoch}]",
        "jne 5f",
        "mov r9, qword ptr [r8 + {packet}]",
        "test r9, r9",
        "jz 5f",
        "cmp rsi, {most_payload}",
        "ja 5f",
        // An unfinished last record was interrupted by this handler: the slow path notes it.
        "mov rax, qword ptr [r8 + {last}]",
        "cmp word ptr [rax], {unfinished}",
        "je 5f",
        // In bits: begin (r10, a multiple of 4 bytes) and end (r11) of the record.
        "mov r10d, dword ptr [r9 + {content}]",
        "add r10, 31",
        "and r10, -32",
        "lea r11, [r10 + 8 * rsi + 8 * {record_head}]",
        "cmp r11, qword ptr [r8 + {limit}]",
        "ja 5f",
        // The time, not before that of the previous record.
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "sub rax, qword ptr [r8 + {line}]",
        "cmp rax, qword ptr [r8 + {line} + 24]",
        "jae 5f",
        "imul rax, qword ptr [r8 + {line} + 16]",
        "shr rax, 32",
        "add rax, qword ptr [r8 + {line} + 8]",
        "cmp rax, qword ptr [r9 + {end}]",
        "cmovb rax, qword ptr [r9 + {end}]",
        "shr r10, 3",
        "add r10, r9",
        // The id of unfinished records; the upper half is overwritten.
        "mov dword ptr [r10], {unfinished}",
        "mov qword ptr [r10 + 2], rax",
        "mov word ptr [r10 + 10], si",
        "mov qword ptr [r8 + {last}], r10",
        "mov qword ptr [r9 + {end}], rax",
        "mov qword ptr [r9 + {content}], r11",
        "3:",
        "mov qword ptr fs:[rcx], 0",
        "lea rax, [r10 + {record_head}]",
        "ret",
        "5:",
        "mov qword ptr fs:[rcx], 0",
        "jmp {slow}",
        // The kernel requires these bytes before the abort address: an undefined instruction with
        // the signature with which the C library has registered.
        ".byte 0x0f, 0xb9, 0x3d",
        ".long 0x53053053",
        "6:",
        "jmp {slow}",
        ".cfi_endproc",
        ".pushsection .data.rel.ro.tracebraid_probe_sequence, \"aw\", @progbits",
        ".balign 32",
        "7:",
        ".long 0, 0",
        ".quad 2b, 3b - 2b, 6b",
        ".popsection",
        mark = sym MARK,
        without = sym emit::reserve_exchanging,
        lose = sym emit::lose,
        slow = sym emit::slow,
        class_epoch = const offset_of!(Class, epoch),
        epoch = const offset_of!(ThreadState, epoch),
        packet = const offset_of!(ThreadState, packet),
        limit = const offset_of!(ThreadState, sequence_limit),
        line = const offset_of!(ThreadState, line),
        last = const offset_of!(ThreadState, last),
        most_payload = const MOST_PAYLOAD,
        record_head = const RECORD_HEAD,
        unfinished = const UNFINISHED,
        content = const CONTENT,
        end = const END,
    )
}
