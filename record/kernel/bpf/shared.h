/* Numbers that both sides must agree upon. build.rs makes constants of Rust of all lines with a number. */
#pragma once

/* CPUs that there can be. */
#define MOST_CPUS 1024
/* Bytes of struct cpu, and of it up to `consumed`. */
#define CACHE_LINE 64
#define CPU_SIZE 128
#define CPU_CONSUMED 64

/* Tries to take room: each fails only if an interrupt comes between reading the position and
 * moving it. */
#define MOST_TRIES 8
/* Bytes of the word that a record in a ring begins with. */
#define RING_WORD 8
/* Bytes after each chunk of a ring, into which its last record may run, and the largest size of a record in bytes; both
 * are larger if more than USUAL_COPY bytes of stacks are copied. */
#define RING_SLACK 81920
#define MOST_RECORD 81912

/* Bytes of struct head. */
#define HEAD_SIZE 16

/* Bytes of struct context_layout, and offset of a field that it lacks. Contexts have less than 256 bytes. */
#define CONTEXT_LAYOUT_SIZE 20
#define NO_CONTEXT 255
#define MOST_COUNTERS 16
#define MOST_CONTEXT 256

/* Bytes for text in records: of a program's path, of an interrupt's name, of a thread's or an interface's. */
#define PATH_SLOT 256
#define INTERRUPT_SLOT 32
#define NAME_SLOT 16

/* Plans of system calls. */
#define MOST_CALLS 512
#define ARGUMENTS 6
#define MOST_PARTS 3
/* Bytes of struct part and struct plan. */
#define PART_DESCRIPTION 4
#define PLAN_SIZE 27
/* Bytes of a part at most: of text (PATH_MAX, with the null), and of anything else. */
#define MOST_TEXT 4096
#define MOST_BYTES 1024

/* Nested PID namespaces of a thread whose numbers are recorded, from the initial one inwards. The kernel allows 32. */
#define MOST_LEVELS 8
/* Bytes of struct seen. */
#define SEEN_SIZE 200

/* Frames of the kernel and of the program at most; the kernel itself gives no more than these of a program. */
#define MOST_KERNEL_FRAMES 48
#define MOST_USER_FRAMES 127

/* Largest number of bytes of a program's stack that are copied: by default, and on request. */
#define USUAL_COPY 65536
#define MOST_COPY 1048576
/* Default number of bytes that are copied of a mapping too large to be a stack. */
#define USUAL_HEAP_COPY 16384
/* Registers of a program. */
#define REGISTERS 17
/* The copy ends before the stack does: at the wanted number of bytes, ... */
#define COPY_IS_CUT 1
/* ... or some pages were not in memory: they are zeros in the copy. */
#define COPY_FAILED 2

/* Bytes of struct python, and of text of Python's at most. */
#define PYTHON_SIZE 48
#define PYTHON_TEXT 256
#define MOST_PYTHON_FRAMES 256

/* Events chosen by name: arguments of one, and bytes of struct chosen_argument and struct chosen. */
#define MOST_CHOSEN_ARGUMENTS 12
#define CHOSEN_ARGUMENT_SIZE 24
#define CHOSEN_SIZE 320
/* When a hit is recorded. NONE: always, and the probe is not at an exit. ALWAYS: always, at an exit. OUTSIDE: if the
 * first argument, the target of a jump, is outside the function. OMITTED: never; counts calls whose return the kernel
 * does not track. CONDITION plus a condition code: if the conditional jump is taken. */
#define EXIT_NONE 0
#define EXIT_ALWAYS 1
#define EXIT_OUTSIDE 2
#define EXIT_OMITTED 3
#define EXIT_CONDITION 16
/* Largest number of code ranges of a function with indirect jumps. */
#define MOST_EXIT_PARTS 2
/* Bytes of a tracepoint's record at most (PERF_MAX_TRACE_SIZE). */
#define MOST_TRACEPOINT 8192
/* Ids of their classes, from the first one on. */
#define FIRST_CHOSEN 10000
#define MOST_CHOSEN 16384
/* Sources of arguments: a constant, a register, memory at a register, and memory that memory points at, twice. */
#define SOURCE_CONSTANT 0
#define SOURCE_REGISTER 1
#define SOURCE_MEMORY 2
#define SOURCE_CHAIN 3
/* Base of a dynamic field's offset: the record, or the end of the field. */
#define SOURCE_RECORD 4
#define SOURCE_FIELD 5
/* No index register. */
#define NO_REGISTER 65535

/* Kinds of parts. */
#define PART_NONE 0
#define PART_TEXT 1
#define PART_BYTES 2

/* What says how many elements a part has: the number of an argument, the result, nothing (there is one), ... */
#define COUNT_RESULT 6
#define COUNT_ONE 7
/* ... one bit for each, and the argument is the first one ... */
#define COUNT_BITS 8
/* ... or the argument behind it points at how many there are. */
#define COUNT_POINTED 9

/* Kinds of records that become events of many classes. Lower ones are ids of event classes. */
#define KIND_syscall_entry 0xfff0
#define KIND_syscall_exit 0xfff1
#define KIND_syscall_entry_parts 0xfff2
#define KIND_syscall_exit_parts 0xfff3

/* Kinds of records with copies of stacks, which become events with return addresses. */
#define KIND_copied_cpu_stack 0xfff4
#define KIND_copied_syscall_stack 0xfff5
/* The name of a function of Python's. */
#define KIND_python_function 0xfff6

/* Entries of calls that are undecided, and decisions: see where.h. */
#define KIND_syscall_undecided 0xfff8
#define KIND_syscall_undecided_parts 0xfff9
#define KIND_call_decision 0xfffa
/* Bytes of struct where. */
#define WHERE_SIZE 168

/* Calls of 32-bit programs have other numbers: they are marked. */
#define CALL_COMPAT 0x8000
/* Numbers that no call has go by this one. */
#define CALL_OTHER 0x7fff
