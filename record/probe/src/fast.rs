//! The fast path as a restartable sequence ([`crate::restart`]).
//!
//! From `2:` to `3:` the kernel knows where the thread is: if a signal is delivered there, or
//! another thread runs, the thread goes on at `6:` and the attempt never was. So nobody sees the
//! sequence half done but whoever kills the process: it needs no compare-exchange, and a record is
//! reserved, dated and published by one store, that of the packet's content. What was written
//! before lies in room that is nobody's, but for the packet's end of time, which may be too late
//! and never too early.
//!
//! Everything that a handler may change is read within, the thread-local value included: a handler
//! that forks, switches to another user-level thread, or begins another packet leaves nothing
//! stale.
//!
//! A thread that the kernel does not watch (a child of `vfork` in its parent's memory) is not taken
//! away from the sequence by its handlers, and finds its mark still there: it loses its event then,
//! which is counted. The mark is removed behind the sequence, so that it means just that, and no
//! code that is unloaded is ever named.
//!
//! Registers: `rdi` and `rsi` keep the arguments for the slow path. All other ones that are used
//! belong to the called function in the C ABI, so nothing is saved on the stack.
//!
//! Safety: the sequence touches the marks of the kernel's area of the thread, the thread's state,
//! and the open packet up to its limit, which are what [`crate::reserve`] touches. `limit` is 0
//! where there is no packet; where the packet's content is not what was written there (the program
//! has overwritten it) its lower half is taken, which cannot lead behind the limit either.

#![allow(unsafe_code)]

use core::mem::offset_of;

use crate::class::Class;
use crate::emit;
use crate::packet::{CONTENT, END, MOST_PAYLOAD, RECORD_HEAD, UNFINISHED};
use crate::restart::MARK;
use crate::thread_state::ThreadState;

/// Takes room for a record of a class with that many bytes of fields; null when there is none, or
/// the class is off: then nothing is left to be done.
#[inline(always)]
pub(crate) fn reserve(class: &Class, payload: usize) -> *mut u8 {
    // SAFETY: the class is there.
    unsafe { tb_reserve(class, payload) }
}

/// Takes room for a record: what [`reserve`] promises. C programs call it as it is: a function
/// between would cost a jump.
///
/// # Safety
/// The class is registered, or switched off.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tb_reserve(class: &Class, payload: usize) -> *mut u8 {
    core::arch::naked_asm!(
        // Who unwinds from a signal handler needs to be told that nothing is on the stack.
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
        // A record that is not finished is one that this handler has interrupted: the slow path
        // notes it.
        "mov rax, qword ptr [r8 + {last}]",
        "cmp word ptr [rax], {unfinished}",
        "je 5f",
        // In bits: where the record begins (r10, a multiple of 4 bytes) and ends (r11).
        "mov r10d, dword ptr [r9 + {content}]",
        "add r10, 31",
        "and r10, -32",
        "lea r11, [r10 + 8 * rsi + 8 * {record_head}]",
        "cmp r11, qword ptr [r8 + {limit}]",
        "ja 5f",
        // The time, not before that of the record before.
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
        // The id of unfinished records; its upper half is written over.
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
        // What the kernel asks for before the place where it lets go on: an instruction that is
        // none, with the number with which the C library has registered.
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
