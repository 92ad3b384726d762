/* The existing threads, with their ids in all PID namespaces.
 *
 * The recorder may be in a PID namespace of its own (a container). /proc has the ids of the
 * namespace for which it was mounted and of its descendants, so event records, which contain ids of
 * the initial namespace, cannot be related to it. An iterator over tasks (Linux 5.8) has all ids.
 * It visits the threads that are visible in the namespace of its reader, and needs no /proc. The
 * alternative, bpf_get_ns_current_pid_tgid(), is limited to the running thread and would cost a
 * look-up at each event. */
#pragma once

#include "sched.h"

struct seen {
	u64 time;
	s32 tid;
	s32 pid;
	s32 parent;
	/* Ids in the namespace of the reader, and the level of that namespace. */
	s32 own_tid;
	s32 own_pid;
	u32 own_level;
	/* Level of the innermost namespace. */
	u32 level;
	u32 flags;
	u32 state;
	u32 exit_state;
	u32 cpu;
	/* The process is in `targets`. */
	u32 is_target;
	struct comm comm;
	/* By level. */
	s32 tids[MOST_LEVELS];
	s32 pids[MOST_LEVELS];
	s32 parents[MOST_LEVELS];
	u32 namespaces[MOST_LEVELS];
} PACKED;
_Static_assert(sizeof(struct seen) == SEEN_SIZE, "SEEN_SIZE in shared.h");

INLINE void copy_namespaces(u32 *to, struct pid *pid)
{
	struct upid all[MOST_LEVELS] = {};

	read_numbers(all, pid);
	/* Zeros are read for missing namespaces. */
	for (u32 level = 0; level < MOST_LEVELS; level++)
		bpf_probe_read_kernel(&to[level], sizeof(u32), &all[level].ns->ns.inum);
}

SEC("iter/task")
int list_tasks(u64 *args)
{
	struct bpf_iter_meta *meta = (void *)args[0];
	struct task_struct *task = (void *)args[1];
	struct pid *reader = bpf_get_current_task_btf()->thread_pid;
	struct seen seen = {};
	u32 process;

	/* The final call has no task. */
	if (!task || !reader)
		return 0;
	seen.time = bpf_ktime_get_ns();
	seen.tid = task->pid;
	seen.pid = process = task->tgid;
	seen.parent = task->real_parent->tgid;
	seen.own_level = own_level = reader->level;
	seen.own_tid = number_at(task->thread_pid, reader->level);
	seen.own_pid = number_at(task->group_leader->thread_pid, reader->level);
	seen.level = task->thread_pid ? task->thread_pid->level : 0;
	seen.flags = task->flags;
	seen.state = task->__state;
	seen.exit_state = task->exit_state;
	seen.cpu = task->thread_info.cpu;
	seen.is_target = bpf_map_lookup_elem(&targets, &process) != 0;
	copy_comm(&seen.comm, task);
	copy_numbers(seen.tids, task);
	copy_numbers(seen.pids, task->group_leader);
	copy_numbers(seen.parents, task->real_parent);
	copy_namespaces(seen.namespaces, task->thread_pid);
	keep_number(task);
	bpf_seq_write(meta->seq, &seen, sizeof(seen));
	return 0;
}
