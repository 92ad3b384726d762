/* The state of each CPU, shared by all programs: its position in the ring, and its current
 * thread. */
#pragma once

#include "kernel.h"
#include "shared.h"

/* The kernel's real-time priorities are below this value, and tracers subtract it. */
#define MAX_RT_PRIO 100

struct comm {
	char text[16];
};

/* Two loads by the kernel's type: a helper that copies 16 bytes takes ten times as long. */
INLINE void copy_comm(struct comm *to, struct task_struct *task)
{
	((u64 *)to)[0] = ((u64 *)task->comm)[0];
	((u64 *)to)[1] = ((u64 *)task->comm)[1];
}

struct runner {
	struct comm comm;
	s32 tid;
	s32 prio;
} PACKED;

struct cpu {
	/* Position in the ring, in bytes since the recording began, at which the next record begins. */
	u64 written;
	/* The thread that runs according to the trace; unknown before the first switch. */
	struct runner runner;
	u32 is_known;
	/* Written by the consumer, hence on a separate cache line: the ring is free up to this
	 * position. */
	u64 consumed __attribute__((aligned(CACHE_LINE)));
} __attribute__((aligned(CACHE_LINE)));
_Static_assert(sizeof(struct cpu) == CPU_SIZE, "CPU_SIZE in shared.h");
_Static_assert(offset_of(struct cpu, consumed) == CPU_CONSUMED, "CPU_CONSUMED in shared.h");

/* Mapped by the consumer. */
struct cpu cpus[MOST_CPUS] SEC(".data.cpus") = {};
