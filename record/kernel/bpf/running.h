/* Who runs on each CPU, as far as the trace says, and the records of all events, which must fit to it. */
#pragma once

#include "ring.h"

/* The kernel counts real-time priorities below this one, and tracers show what is above. */
#define MAX_RT_PRIO 100

struct comm {
	char text[16];
};

INLINE void copy_comm(struct comm *to, struct task_struct *task)
{
	bpf_probe_read_kernel(to, sizeof(*to), task->comm);
}

struct runner {
	struct comm comm;
	s32 tid;
	s32 prio;
} PACKED;

INLINE void set_runner(struct runner *runner, struct task_struct *task)
{
	copy_comm(&runner->comm, task);
	runner->tid = task->pid;
	runner->prio = task->prio - MAX_RT_PRIO;
}

struct switched {
	struct head head;
	struct runner prev;
	s64 prev_state;
	struct runner next;
} PACKED;

/* By CPU: the thread to which the trace says it has switched. */
struct running {
	struct runner runner;
	/* Not before the first switch of the recording. */
	u32 is_known;
} running[MOST_CPUS] SEC(".data.running") = {};

INLINE void now_runs(const struct runner *runner)
{
	u32 cpu = bpf_get_smp_processor_id();

	if (cpu >= MOST_CPUS)
		return;
	running[cpu].runner = *runner;
	running[cpu].is_known = 1;
}

/* The usual state of a thread that leaves its CPU: it sleeps (TASK_INTERRUPTIBLE). */
#define STATE_SLEEPING 1

/* Some kernels do not tell of all switches: what keeps a machine may hide those out of its own threads. What the next
 * thread did would be the hidden one's, so the trace tells of a switch as soon as it is noticed. Not to be called where
 * the kernel may be between telling of a switch and switching, when it stops clocks of the thread that goes. */
__attribute__((noinline)) static int notice_switch(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 cpu = bpf_get_smp_processor_id();

	if (cpu >= MOST_CPUS || !running[cpu].is_known || running[cpu].runner.tid == task->pid)
		return 0;
	RESERVE(record, switched, sched_switch);
	record->prev = running[cpu].runner;
	record->prev_state = STATE_SLEEPING;
	set_runner(&record->next, task);
	now_runs(&record->next);
	end(record);
	return 0;
}

/* Begins a record that tells what the running thread does, or what comes between. */
#define BEGIN(record, type, kind) \
	notice_switch(); \
	RESERVE(record, type, kind)
