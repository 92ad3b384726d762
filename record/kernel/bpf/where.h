/*
 * Conditions on system calls and page faults (`--where`).
 *
 * The duration and the result of a call are known at its exit, and its entry belongs at an earlier time, so a call is
 * watched: its entry only notes the time. It becomes a record when the thread leaves its CPU in the call, at a tick of the
 * CPU's clock, or at the exit of a call that is recorded, whichever is first. All three happen on the CPU of the entry, and
 * soon after it, so that the recorder, which sorts the events of a CPU by time, can still put it at its place.
 *
 * An entry that was sent before the exit is undecided: the exit sends a decision, and the recorder waits `hold_ns` for it.
 * A call that takes longer is recorded, or is not (`hold_keeps`), whatever its result. So a call of any length has its
 * entry at the right time, and the recorder keeps no more than `hold_ns` in memory.
 *
 * Alternatives: to write the entry at once and strike it out at the exit costs room in the ring for each call that is
 * left out; to write it at the exit with the time of the entry in a field is read wrong by all other readers.
 */
#pragma once

#include "targets.h"

struct bounds {
	s64 least;
	s64 most;
	u32 is_used;
	/* Values outside are wanted. */
	u32 is_inverted;
};

struct where {
	u64 hold_ns;
	/* The thread's name, as far as the mask goes. */
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

/* A macro, since bounds are constants to the verifier only where they are read directly. */
#define HOLDS(field, value) \
	(!where.field.is_used || \
	 (((s64)(value) >= where.field.least && (s64)(value) <= where.field.most) != where.field.is_inverted))

/* What the condition says of the running thread. */
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

/* Of a page fault, which has neither duration nor result. */
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
	/* It has, and is undecided. */
	IS_SENT,
	/* There was no room for it. */
	IS_LOST,
	/* The call is recorded whatever comes of it. */
	IS_WANTED,
};

/* By thread: the call that it is in. */
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

/* Whether the entry of that time on that CPU stays. */
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

/* Gives a record the time and the context of the entry. */
INLINE void set_entered(struct head *head, const struct watched *watched)
{
	head->time = watched->entered;
	if (contexts.bytes)
		bpf_probe_read_kernel((void *)head - contexts.bytes, contexts.bytes, watched->context);
}

/* This thread ends in a call. */
INLINE void end_watched(struct task_struct *task)
{
	struct watched *watched = bpf_task_storage_get(&watched_calls, task, 0, 0);
	bool is_wanted;

	if (!watched || __sync_lock_test_and_set(&watched->state, NOT_WATCHED) != IS_SENT)
		return;
	is_wanted = where.hold_keeps && bpf_ktime_get_ns() - watched->entered >= where.hold_ns;
	send_decision(watched, is_wanted);
}
