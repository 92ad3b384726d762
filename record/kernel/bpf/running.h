/* The thread that runs on each CPU according to the trace; records of all events must be consistent
 * with it. */
#pragma once

#include "ring.h"

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

INLINE void now_runs(u32 cpu, struct task_struct *task)
{
	if (cpu >= MOST_CPUS)
		return;
	set_runner(&cpus[cpu].runner, task);
	cpus[cpu].is_known = 1;
}

/* The usual state of a thread that leaves its CPU: sleeping (TASK_INTERRUPTIBLE). */
#define STATE_SLEEPING 1

/* Records a switch to the running thread that the kernel did not report. */
__attribute__((noinline)) static int send_noticed_switch(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	RESERVE(record, switched, sched_switch);

	if (this_cpu >= MOST_CPUS)
		return 0;
	record->prev = cpus[this_cpu].runner;
	record->prev_state = STATE_SLEEPING;
	set_runner(&record->next, task);
	now_runs(this_cpu, task);
	end(record);
	return 0;
}

/* Some kernels do not report all switches: security software may hide switches from its own
 * threads. Events of the next thread would be attributed to the hidden thread, so a switch is
 * recorded as soon as it is noticed. Must not be called where the kernel may be between reporting a
 * switch and switching, when it stops clocks of the previous thread. */
INLINE void notice_switch(u32 cpu, struct task_struct *task)
{
	if (cpu < MOST_CPUS && cpus[cpu].is_known && cpus[cpu].runner.tid != task->pid)
		send_noticed_switch();
}

/* Begins a record of an event of the running thread `task`, or of an interrupt. */
#define BEGIN_OF(task, record, type, kind, more) \
	u32 this_cpu = bpf_get_smp_processor_id(); \
	struct type *record; \
	notice_switch(this_cpu, task); \
	record = reserve(this_cpu, KIND_##kind, more, sizeof(struct type)); \
	if (!record) \
		return 0

#define BEGIN(record, type, kind) BEGIN_OF(bpf_get_current_task_btf(), record, type, kind, 0)
