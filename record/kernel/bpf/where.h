/* Conditions on system calls and page faults (`--where`).
 *
 * Duration and result of a call are known only at its exit, but its entry has an earlier timestamp,
 * so a call is watched: its entry only notes the time. The entry becomes a record when the thread
 * leaves its CPU in the call, at a tick of the CPU's clock, or at the exit of a recorded call,
 * whichever is first. All three happen on the CPU of the entry, and soon after it, so that the
 * recorder, which sorts the events of a CPU by time, can still insert it.
 *
 * An entry that was sent before the exit is undecided: the exit sends a decision, and the recorder
 * waits `hold_ns` for it. A call that takes longer is recorded, or not (`hold_keeps`), whatever its
 * result. So a call of any length has its entry at the right time, and the recorder keeps events of
 * at most `hold_ns` in memory.
 *
 * Rejected alternatives: writing the entry at once and deleting it at the exit takes room in the
 * ring for each call that is left out; writing it at the exit with the time of the entry in a field
 * would be misread by all other readers. */
#pragma once

#include "targets.h"

struct bounds {
	s64 least;
	s64 most;
	u32 is_used;
	/* Selects values outside the bounds. */
	u32 is_inverted;
};

struct where {
	u64 hold_ns;
	/* The thread's name, compared under the mask. */
	u64 name[2];
	u64 name_mask[2];
	struct bounds duration;
	struct bounds ret;
	struct bounds tid;
	struct bounds pid;
	struct bounds prio;
	u8 is_used;
	/* Duration or result are compared. */
	u8 has_outcome;
	/* Calls that take longer than `hold_ns` are recorded. */
	u8 hold_keeps;
	u8 has_name;
	u8 name_is_inverted;
	u8 padding[3];
};
_Static_assert(sizeof(struct where) == WHERE_SIZE, "WHERE_SIZE in shared.h");

const volatile struct where where SEC(".rodata.where") = {};

/* By CPU: system calls and page faults that were left out. */
u64 left_out[MOST_CPUS] SEC(".data.left") = {};

INLINE void count_left_out(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	if (cpu < MOST_CPUS)
		__sync_fetch_and_add(&left_out[cpu], 1);
}

/* A macro, since the bounds are constants to the verifier only where they are read directly. */
#define HOLDS(field, value) \
	(!where.field.is_used || \
	 (((s64)(value) >= where.field.least && (s64)(value) <= where.field.most) != where.field.is_inverted))

/* True if the conditions on threads hold for the running thread. */
INLINE bool thread_is_wanted(struct task_struct *task)
{
	if (!HOLDS(tid, task->pid) || !HOLDS(pid, task->tgid) || !HOLDS(prio, task->prio - MAX_RT_PRIO))
		return 0;
	if (where.has_name) {
		u64 name[2];
		bool is_equal;

		copy_comm((struct comm *)name, task);
		is_equal = !(((name[0] ^ where.name[0]) & where.name_mask[0]) |
			     ((name[1] ^ where.name[1]) & where.name_mask[1]));
		return is_equal != where.name_is_inverted;
	}
	return 1;
}

/* For a page fault, which has neither duration nor result. */
INLINE bool fault_is_wanted(void)
{
	if (!where.is_used || thread_is_wanted(bpf_get_current_task_btf()))
		return 1;
	count_left_out();
	return 0;
}

/* States of a call. */
enum watch_state {
	NOT_WATCHED,
	/* Its entry has not been sent. */
	IS_HELD,
	/* Its entry has been sent, and is undecided. */
	IS_SENT,
	/* There was no room for its entry. */
	IS_LOST,
	/* The call is recorded in any case. */
	IS_WANTED,
};

/* By thread: the current call. */
struct watched {
	u64 entered;
	u32 state;
	u32 cpu;
	u16 number;
	u16 padding[3];
	/* Taken at the entry. */
	u8 context[MOST_CONTEXT];
};

struct {
	MAP_INT(type, MAP_TASK_STORAGE);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct watched);
} watched_calls SEC(".maps");

/* States whether the entry at that time on that CPU is recorded. */
struct decision {
	struct head head;
	u64 entered;
	u32 cpu;
	u32 is_wanted;
} PACKED;

INLINE int send_decision(const struct watched *watched, bool is_wanted)
{
	RESERVE(record, decision, call_decision);
	record->entered = watched->entered;
	record->cpu = watched->cpu;
	record->is_wanted = is_wanted;
	end(record);
	return 0;
}

/* Sets the time and the context of a record to those of the entry. */
INLINE void set_entered(struct head *head, const struct watched *watched)
{
	head->time = watched->entered;
	if (contexts.bytes)
		bpf_probe_read_kernel((void *)head - contexts.bytes, contexts.bytes, watched->context);
}

/* The running thread exits in a call. */
INLINE void end_watched(struct task_struct *task)
{
	struct watched *watched = bpf_task_storage_get(&watched_calls, task, 0, 0);
	bool is_wanted;

	if (!watched || __sync_lock_test_and_set(&watched->state, NOT_WATCHED) != IS_SENT)
		return;
	is_wanted = where.hold_keeps && bpf_ktime_get_ns() - watched->entered >= where.hold_ns;
	send_decision(watched, is_wanted);
}
