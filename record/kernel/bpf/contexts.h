/* Contexts: values of the thread in which an event occurs, with the names and types of
 * lttng-modules.
 *
 * They lie between the word and the head of each record, so that all programs get them without
 * being changed. The alternative was a trailer: in records of variable size its offset varies, and
 * each program would have to prove the bound to the verifier. The set of contexts is constant to
 * the verifier, which removes the code of all others. */
#pragma once

#include "cpu.h"

/* Offsets in the context; NO_CONTEXT for fields that are not requested. */
struct context_layout {
	/* Bytes of all fields, padded to a multiple of eight; 0 if there are no contexts. */
	u8 bytes;
	/* Performance counters: their number, and the offset of the first. */
	u8 counters;
	u8 counters_at;
	u8 pid;
	u8 tid;
	u8 ppid;
	u8 vpid;
	u8 vtid;
	u8 vppid;
	u8 prio;
	u8 nice;
	u8 procname;
	u8 pid_ns;
	u8 uid;
	u8 gid;
	u8 padding;
	/* Number of elements of `counters` for each counter. */
	u32 cpus;
};
_Static_assert(sizeof(struct context_layout) == CONTEXT_LAYOUT_SIZE, "CONTEXT_LAYOUT_SIZE in shared.h");

const volatile struct context_layout contexts SEC(".rodata.contexts") = {};

/* Perf events, ordered by counter, then by CPU. */
struct {
	MAP_INT(type, MAP_PERF_EVENT_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} counters SEC(".maps");

/* include/uapi/linux/bpf.h */
struct counter_value {
	u64 counter;
	u64 enabled;
	u64 running;
};

/* The thread's id in the PID namespace of a level; 0 if it has none. */
INLINE s32 number_at(struct pid *pid, u32 level)
{
	s32 number = 0;

	if (pid && level <= pid->level)
		bpf_probe_read_kernel(&number, sizeof(number), (void *)pid->numbers + level * sizeof(struct upid));
	return number;
}

/* Level of the innermost PID namespace of the task. */
INLINE u32 namespace_of(struct task_struct *task)
{
	struct pid *pid = task->thread_pid;
	struct upid number = {};
	u32 level = pid ? pid->level : 0;
	u32 inum = 0;

	if (!pid || level >= MOST_LEVELS)
		return 0;
	bpf_probe_read_kernel(&number, sizeof(number), (void *)pid->numbers + level * sizeof(struct upid));
	if (number.ns)
		bpf_probe_read_kernel(&inum, sizeof(inum), &number.ns->ns.inum);
	return inum;
}

#define WANTS(field) (contexts.field != NO_CONTEXT)
#define PUT(to, field, value) (*(s32 *)((to) + contexts.field) = (value))
/* static_prio of a thread with nice value 0. */
#define NICE_0_PRIO 120

/* Ids in the innermost namespace of the thread. Most threads are in the initial namespace, where
 * both ids are equal. */
INLINE void copy_inner_numbers(u8 *to, struct task_struct *task)
{
	struct pid *pid = task->thread_pid;
	u32 level = pid ? pid->level : 0;

	if (WANTS(vpid))
		PUT(to, vpid, level ? number_at(task->group_leader->thread_pid, level) : task->tgid);
	if (WANTS(vtid))
		PUT(to, vtid, level ? number_at(pid, level) : task->pid);
	if (WANTS(vppid)) {
		struct task_struct *parent = task->real_parent;

		/* 0 for a parent outside the namespace, like getppid(). */
		PUT(to, vppid, level ? number_at(parent->group_leader->thread_pid, level) : parent->tgid);
	}
}

INLINE void copy_counters(u8 *to)
{
	u32 index = bpf_get_smp_processor_id();

#pragma clang loop unroll(full)
	for (u32 counter = 0; counter < MOST_COUNTERS; counter++) {
		struct counter_value value = {};

		if (counter >= contexts.counters)
			break;
		/* If reading fails (in an NMI, or on a CPU that was added later), the value is 0, as in
		 * lttng-modules. */
		bpf_perf_event_read_value(&counters, index, &value, sizeof(value));
		*(u64 *)(to + contexts.counters_at + counter * sizeof(u64)) = value.counter;
		index += contexts.cpus;
	}
}

/* Writes the context of the running thread. */
__attribute__((noinline)) static int copy_context(u8 *to)
{
	struct task_struct *task = bpf_get_current_task_btf();

	if (!to)
		return 0;
	if (WANTS(pid))
		PUT(to, pid, task->tgid);
	if (WANTS(tid))
		PUT(to, tid, task->pid);
	if (WANTS(ppid))
		PUT(to, ppid, task->real_parent->tgid);
	if (WANTS(vpid) || WANTS(vtid) || WANTS(vppid))
		copy_inner_numbers(to, task);
	if (WANTS(prio))
		PUT(to, prio, task->prio - MAX_RT_PRIO);
	if (WANTS(nice))
		PUT(to, nice, task->static_prio - NICE_0_PRIO);
	if (WANTS(procname))
		copy_comm((struct comm *)(to + contexts.procname), task);
	if (WANTS(pid_ns))
		PUT(to, pid_ns, namespace_of(task));
	if (WANTS(uid))
		PUT(to, uid, (u32)bpf_get_current_uid_gid());
	if (WANTS(gid))
		PUT(to, gid, bpf_get_current_uid_gid() >> 32);
	if (contexts.counters)
		copy_counters(to);
	return 0;
}
