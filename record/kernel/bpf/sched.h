/* Scheduling: context switches, wake-ups, creation and exit of threads. */
#pragma once

#include "targets.h"

/* TASK_REPORT and the states after it (include/linux/sched.h). */
#define STATE_REPORTED 0x7f
#define STATE_IDLE 0x80
#define STATE_PREEMPTED 0x100
#define STATE_UNINTERRUPTIBLE 0x2
#define STATE_NOLOAD 0x400
#define STATE_RTLOCK_WAIT 0x1000
#define STATE_FROZEN 0x8000

/* The highest bit of the state that `ps` would show. */
INLINE s64 reported_state(u32 state, u32 exit_state)
{
	u32 shown = (state | exit_state) & STATE_REPORTED;
	u32 idle = STATE_UNINTERRUPTIBLE | STATE_NOLOAD;

	if ((state & idle) == idle)
		return STATE_IDLE;
	if (state & (STATE_RTLOCK_WAIT | STATE_FROZEN))
		return STATE_UNINTERRUPTIBLE;
	/* There are few bits: each iteration clears the lowest bit while others are set. */
	for (int i = 0; i < 7 && (shown & (shown - 1)); i++)
		shown &= shown - 1;
	return shown;
}

SEC("tp_btf/sched_switch")
int on_sched_switch(u64 *args)
{
	bool preempted = args[0];
	struct task_struct *prev = (void *)args[1];
	struct task_struct *next = (void *)args[2];
	u32 state = args[3];

	BEGIN_OF(prev, record, switched, sched_switch, 0);
	set_runner(&record->prev, prev);
	record->prev_state = preempted ? STATE_PREEMPTED : reported_state(state, prev->exit_state);
	set_runner(&record->next, next);
	now_runs(this_cpu, next);
	end(record);
	return 0;
}

struct woken {
	struct head head;
	struct comm comm;
	s32 tid;
	s32 prio;
	s32 target_cpu;
} PACKED;

#define ON_WAKEUP(name) \
	SEC("tp_btf/" #name) \
	int on_##name(u64 *args) \
	{ \
		struct task_struct *task = (void *)args[0]; \
		BEGIN(record, woken, name); \
		copy_comm(&record->comm, task); \
		record->tid = task->pid; \
		record->prio = task->prio - MAX_RT_PRIO; \
		record->target_cpu = task->thread_info.cpu; \
		end(record); \
		return 0; \
	}

ON_WAKEUP(sched_waking)
ON_WAKEUP(sched_wakeup)
ON_WAKEUP(sched_wakeup_new)

struct migrated {
	struct head head;
	struct comm comm;
	s32 tid;
	s32 prio;
	s32 orig_cpu;
	s32 dest_cpu;
} PACKED;

SEC("tp_btf/sched_migrate_task")
int on_sched_migrate_task(u64 *args)
{
	struct task_struct *task = (void *)args[0];

	BEGIN(record, migrated, sched_migrate_task);
	copy_comm(&record->comm, task);
	record->tid = task->pid;
	record->prio = task->prio - MAX_RT_PRIO;
	record->orig_cpu = task->thread_info.cpu;
	record->dest_cpu = args[1];
	end(record);
	return 0;
}

struct forked {
	struct head head;
	struct comm parent_comm;
	s32 parent_tid;
	s32 parent_pid;
	u32 parent_ns_inum;
	struct comm child_comm;
	s32 child_tid;
	u8 vtids_length;
	s32 vtids[MOST_LEVELS];
	s32 child_pid;
	u32 child_ns_inum;
} PACKED;

/* Copies the ids of a task in all its namespaces; returns their number. In one read, since the
 * verifier would follow a branch for each level. */
INLINE u32 read_numbers(struct upid *to, struct pid *pid)
{
	u32 level = pid ? pid->level : 0;

	if (!pid || level >= MOST_LEVELS)
		return 0;
	return bpf_probe_read_kernel(to, (level + 1) * sizeof(struct upid), pid->numbers) ? 0 : level + 1;
}

INLINE u8 copy_numbers(s32 *to, struct task_struct *task)
{
	struct upid all[MOST_LEVELS] = {};
	u32 count = read_numbers(all, task->thread_pid);

	for (u32 level = 0; level < MOST_LEVELS; level++)
		to[level] = all[level].nr;
	return count;
}

/* Makes the id of a process in the recorder's PID namespace available later. */
INLINE void keep_number(struct task_struct *task)
{
	u32 level = own_level;
	u32 process = task->tgid;
	u32 number;

	if (!level || task->pid != task->tgid)
		return;
	number = number_at(task->thread_pid, level);
	if (number)
		bpf_map_update_elem(&numbers, &number, &process, BPF_ANY);
}

SEC("tp_btf/sched_process_fork")
int on_sched_process_fork(u64 *args)
{
	struct task_struct *parent = (void *)args[0];
	struct task_struct *child = (void *)args[1];

	follow_fork(parent->tgid, child->tgid);
	keep_number(child);
	if (options.hides_forks)
		return 0;
	BEGIN(record, forked, sched_process_fork);
	copy_comm(&record->parent_comm, parent);
	record->parent_tid = parent->pid;
	record->parent_pid = parent->tgid;
	record->parent_ns_inum = namespace_of(parent);
	copy_comm(&record->child_comm, child);
	record->child_tid = child->pid;
	record->vtids_length = copy_numbers(record->vtids, child);
	record->child_pid = child->tgid;
	record->child_ns_inum = namespace_of(child);
	end(record);
	return 0;
}

struct executed {
	struct head head;
	char filename[PATH_SLOT];
	s32 tid;
	s32 old_tid;
} PACKED;

SEC("tp_btf/sched_process_exec")
int on_sched_process_exec(u64 *args)
{
	struct task_struct *task = (void *)args[0];
	struct linux_binprm *program = (void *)args[2];

	BEGIN(record, executed, sched_process_exec);
	bpf_probe_read_kernel_str(record->filename, sizeof(record->filename), program->filename);
	record->tid = task->pid;
	record->old_tid = args[1];
	end(record);
	return 0;
}

struct ended {
	struct head head;
	struct comm comm;
	s32 tid;
	s32 prio;
} PACKED;

#define ON_END(name, is_last) \
	SEC("tp_btf/" #name) \
	int on_##name(u64 *args) \
	{ \
		struct task_struct *task = (void *)args[0]; \
		if (is_last && task->pid == task->tgid) \
			follow_end(task->tgid); \
		if (options.hides_forks) \
			return 0; \
		BEGIN(record, ended, name); \
		copy_comm(&record->comm, task); \
		record->tid = task->pid; \
		record->prio = task->prio - MAX_RT_PRIO; \
		end(record); \
		return 0; \
	}

ON_END(sched_process_exit, 0)
ON_END(sched_process_free, 1)
