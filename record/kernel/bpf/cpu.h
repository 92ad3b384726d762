/* The state of each CPU, shared by all programs: its position in the ring, and the thread that
 * runs. */
#pragma once

#include "kernel.h"
#include "shared.h"

/* The kernel counts real-time priorities below this one, and tracers show what is above. */
#define MAX_RT_PRIO 100

struct comm {
	char text[16];
};

/* Two loads from the kernel's type: a helper that copies 16 bytes takes ten times as long. */
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
	/* Position in the ring, in bytes since the recording began: where the next record
	 * begins. */
	u64 written;
	/* The thread to which the trace has switched; unknown before the first switch. */
	struct runner runner;
	u32 is_known;
	/* Written by the consumer, hence on a cache line of its own: the ring is free up to this
	 * position. */
	u64 consumed __attribute__((aligned(CACHE_LINE)));
} __attribute__((aligned(CACHE_LINE)));
_Static_assert(sizeof(struct cpu) == CPU_SIZE, "CPU_SIZE in shared.h");
_Static_assert(offset_of(struct cpu, consumed) == CPU_CONSUMED, "CPU_CONSUMED in shared.h");

/* The consumer maps them. */
struct cpu cpus[MOST_CPUS] SEC(".data.cpus") = {};
