/* Numbers shared with user space. build.rs turns each line with a number into a Rust constant. */
#pragma once

/* Maximum number of CPUs. */
#define MOST_CPUS 1024
/* Size of struct cpu, and offset of `consumed`. */
#define CACHE_LINE 64
#define CPU_SIZE 128
#define CPU_CONSUMED 64

/* Attempts to reserve room: an attempt fails only if an interrupt occurs between reading the
 * position and moving it. */
#define MOST_TRIES 8
/* Size of the word with which a record in a ring begins. */
#define RING_WORD 8
/* Bytes after each chunk of a ring, into which its last record may extend, and the maximum size of
 * a record in bytes. Both are larger if more than USUAL_COPY bytes of stacks are copied. */
#define RING_SLACK 81920
#define MOST_RECORD 81912

/* Size of struct head. */
#define HEAD_SIZE 16

/* Size of struct context_layout, and the offset that marks a missing field. Contexts have less than
 * 256 bytes. */
#define CONTEXT_LAYOUT_SIZE 20
#define NO_CONTEXT 255
#define MOST_COUNTERS 16
#define MOST_CONTEXT 256

/* Bytes for text in records: a program's path, an interrupt's name, the name of a thread or
 * interface. */
#define PATH_SLOT 256
#define INTERRUPT_SLOT 32
#define NAME_SLOT 16

/* Plans of system calls. */
#define MOST_CALLS 512
#define ARGUMENTS 6
#define MOST_PARTS 3
/* Size of struct part and of struct plan. */
#define PART_DESCRIPTION 4
#define PLAN_SIZE 27
/* Maximum size of a part: of text (PATH_MAX with the null), and of other data. */
#define MOST_TEXT 4096
#define MOST_BYTES 1024

/* Nested PID namespaces in which a thread's ids are recorded, from the initial namespace inwards.
 * The kernel allows 32. */
#define MOST_LEVELS 8
/* Size of struct seen. */
#define SEEN_SIZE 200

/* Maximum number of frames of the kernel and of the program; the kernel itself returns no more
 * frames of a program. */
#define MOST_KERNEL_FRAMES 48
#define MOST_USER_FRAMES 127

/* Maximum number of bytes of a program's stack that are copied: by default, and on request. */
#define USUAL_COPY 65536
#define MOST_COPY 1048576
/* Default number of bytes that are copied of a mapping too large to be a stack. */
#define USUAL_HEAP_COPY 16384
/* Number of user-space registers. */
#define REGISTERS 17
/* The copy ends before the stack does: at the requested number of bytes, ... */
#define COPY_IS_CUT 1
/* ... or some pages were not in memory: they are zeros in the copy. */
#define COPY_FAILED 2

/* Size of struct python, and maximum number of bytes of a Python string. */
#define PYTHON_SIZE 48
#define PYTHON_TEXT 256
#define MOST_PYTHON_FRAMES 256

/* Events chosen by name: maximum number of arguments, and size of struct chosen_argument and of
 * struct chosen. */
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
/* Maximum size of a tracepoint's record (PERF_MAX_TRACE_SIZE). */
#define MOST_TRACEPOINT 8192
/* Range of the ids of their classes. */
#define FIRST_CHOSEN 10000
#define MOST_CHOSEN 16384
/* Sources of arguments: a constant, a register, memory at a register, and memory after two
 * dereferences. */
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

/* Source of the number of elements of a part: an argument (by its number), the result, the constant
 * one, ... */
#define COUNT_RESULT 6
#define COUNT_ONE 7
/* ... the first argument, which is a number of bits, ... */
#define COUNT_BITS 8
/* ... or memory to which the next argument points. */
#define COUNT_POINTED 9

/* Kinds of records that become events of several classes. Lower kinds are ids of event classes. */
#define KIND_syscall_entry 0xfff0
#define KIND_syscall_exit 0xfff1
#define KIND_syscall_entry_parts 0xfff2
#define KIND_syscall_exit_parts 0xfff3

/* Kinds of records with copies of stacks, which become events with return addresses. */
#define KIND_copied_cpu_stack 0xfff4
#define KIND_copied_syscall_stack 0xfff5
/* The name of a Python function. */
#define KIND_python_function 0xfff6

/* Entries of undecided calls, and decisions: see where.h. */
#define KIND_syscall_undecided 0xfff8
#define KIND_syscall_undecided_parts 0xfff9
#define KIND_call_decision 0xfffa
/* Size of struct where. */
#define WHERE_SIZE 168

/* Marks numbers of calls by 32-bit programs, which have a separate numbering. */
#define CALL_COMPAT 0x8000
/* Stands for all numbers that are not system calls. */
#define CALL_OTHER 0x7fff
