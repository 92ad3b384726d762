/* System calls, with their arguments and the memory to which these point. */
#pragma once

#include "where.h"

/* Maximum size of a part, with its two-byte length. */
#define PART_SIZE (2 + MOST_TEXT)

/* Memory of the program to which a call's argument points. */
struct part {
	u8 kind;
	/* Index of the argument that points to it. */
	u8 argument;
	/* Source of the number of elements: the index of an argument, or COUNT_... (shared.h). */
	u8 count;
	/* Bytes of an element. */
	u8 unit;
};

/* How a call is recorded. */
struct plan {
	u8 is_wanted;
	/* The exit event contains arguments, too. */
	u8 exit_has_arguments;
	/* The call overwrites memory that the entry event contains, so it must be read at the entry. */
	u8 changes_arguments;
	struct part entry[MOST_PARTS];
	struct part exit[MOST_PARTS];
};
_Static_assert(sizeof(struct part) == PART_DESCRIPTION, "PART_DESCRIPTION in shared.h");
_Static_assert(sizeof(struct plan) == PLAN_SIZE, "PLAN_SIZE in shared.h");

/* By number; calls of 32-bit programs follow the others. */
struct {
	MAP_INT(type, MAP_ARRAY);
	MAP_INT(max_entries, 2 * MOST_CALLS);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct plan);
} plans SEC(".maps");

/* The plan of all numbers that are not system calls. */
#define OTHER_PLAN (MOST_CALLS - 2)
#define STATUS_COMPAT 2
/* On return from a signal handler, the number is lost. */
#if defined(__TARGET_ARCH_arm64)
#define CALL_SIGRETURN 139
#else
#define CALL_SIGRETURN 15
#endif

struct call_entered {
	struct head head;
	u64 arguments[ARGUMENTS];
} PACKED;

struct call_left {
	struct head head;
	s64 result;
} PACKED;

struct call {
	struct head head;
	s64 result;
	u64 arguments[ARGUMENTS];
	u8 parts[MOST_PARTS * PART_SIZE];
} PACKED;

/* Arguments in the calling convention of 32-bit programs. */
INLINE void copy_compat_arguments(u64 *to, struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	to[0] = (u32)regs->bx;
	to[1] = (u32)regs->cx;
	to[2] = (u32)regs->dx;
	to[3] = (u32)regs->si;
	to[4] = (u32)regs->di;
	to[5] = (u32)regs->bp;
#endif
}

INLINE void copy_arguments(u64 *to, struct pt_regs *regs, u16 number)
{
	if (number & CALL_COMPAT) {
		copy_compat_arguments(to, regs);
		return;
	}
#if defined(__TARGET_ARCH_arm64)
	/* The first argument's register is overwritten by the result. */
	to[0] = regs->orig_x0;
	for (int i = 1; i < ARGUMENTS; i++)
		to[i] = regs->regs[i];
#else
	to[0] = regs->di;
	to[1] = regs->si;
	to[2] = regs->dx;
	to[3] = regs->r10;
	to[4] = regs->r8;
	to[5] = regs->r9;
#endif
}

INLINE u16 number_of(struct task_struct *task, u64 number)
{
#if defined(__TARGET_ARCH_x86)
	if (task->thread_info.status & STATUS_COMPAT)
		return (number < OTHER_PLAN ? number : CALL_OTHER) | CALL_COMPAT;
#endif
	return number < OTHER_PLAN ? number : CALL_OTHER;
}

/* The number of the call that returns. */
INLINE u16 number_left(struct task_struct *task, struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_arm64)
	s64 number = regs->syscallno;
#else
	s64 number = regs->orig_ax;
#endif
	return number == -1 ? CALL_SIGRETURN : number_of(task, number);
}

/* The number to which an argument points. */
INLINE u32 pointed(const struct call *call, u32 argument)
{
	u32 number = 0;

	if (argument < ARGUMENTS)
		bpf_probe_read_user(&number, sizeof(number), (void *)call->arguments[argument]);
	return number;
}

INLINE u64 size_of_part(const struct part *part, const struct call *call)
{
	u64 count = 1;

	/* A failed call has written no output. */
	if (call->result < 0)
		return 0;
	if (part->count < ARGUMENTS)
		count = call->arguments[part->count];
	else if (part->count == COUNT_RESULT)
		count = call->result;
	else if (part->count == COUNT_BITS)
		/* The kernel accesses whole words. */
		count = (call->arguments[0] + 63) / 64 * 8;
	else if (part->count == COUNT_POINTED)
		count = pointed(call, part->argument + 1);
	return count > MOST_BYTES ? MOST_BYTES : count * part->unit;
}

/* Copies the memory to which the argument points, after its size; returns the size of both. */
INLINE u32 copy_part(struct call *call, u32 at, const struct part *part)
{
	const void *from;
	s64 size = 0;
	u8 *to;

	if (part->kind == PART_NONE || at > (MOST_PARTS - 1) * PART_SIZE || part->argument >= ARGUMENTS)
		return 0;
	from = (void *)call->arguments[part->argument];
	to = call->parts + at;
	if (part->kind == PART_TEXT) {
		size = bpf_probe_read_user_str(to + 2, MOST_TEXT, from);
	} else if (from) {
		u64 wanted = size_of_part(part, call);

		if (wanted > MOST_BYTES)
			wanted = MOST_BYTES;
		size = bpf_probe_read_user(to + 2, wanted, from) ? 0 : wanted;
	}
	if (size < 0 || size > MOST_TEXT)
		size = 0;
	*(u16 *)to = size;
	return 2 + size;
}

/* Copies the parts of a call whose arguments are already in the record, and completes the
 * record. */
INLINE void end_with_parts(u32 cpu, struct call *call, const struct part *parts, const struct room *room)
{
	u32 at = copy_part(call, 0, &parts[0]);

	at += copy_part(call, at, &parts[1]);
	at += copy_part(call, at, &parts[2]);
	end_large(cpu, call, sizeof(*call), offset_of(struct call, parts) + at, room);
}

INLINE struct plan *plan_of(u16 number)
{
	u32 call = number & (CALL_COMPAT - 1);
	u32 key = (call < OTHER_PLAN ? call : OTHER_PLAN) + (number & CALL_COMPAT ? MOST_CALLS : 0);
	struct plan *plan = bpf_map_lookup_elem(&plans, &key);

	return plan && plan->is_wanted ? plan : 0;
}

INLINE int send_entry(struct task_struct *task, struct pt_regs *regs, u16 number)
{
	BEGIN_OF(task, record, call_entered, syscall_entry, number);
	copy_arguments(record->arguments, regs, number);
	end(record);
	return 0;
}

INLINE int send_exit(struct task_struct *task, s64 result, u16 number)
{
	BEGIN_OF(task, record, call_left, syscall_exit, number);
	record->result = result;
	end(record);
	return 0;
}

INLINE int send_with_parts(struct task_struct *task, struct pt_regs *regs, s64 result, u16 kind, u16 number,
			   const struct part *parts)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct room room;
	struct call *call;

	notice_switch(cpu, task);
	call = reserve_large(cpu, kind, number, sizeof(*call), &room);
	if (!call)
		return 0;
	call->result = result;
	copy_arguments(call->arguments, regs, number);
	end_with_parts(cpu, call, parts, &room);
	return 0;
}

/* Sends the entry of a watched call of the running thread. */
__attribute__((noinline)) static int send_watched(struct task_struct *task, struct watched *watched, bool is_decided)
{
	struct plan *plan = watched ? plan_of(watched->number) : 0;
	struct pt_regs *regs = task ? bpf_task_pt_regs(task) : 0;
	u32 cpu = bpf_get_smp_processor_id();
	struct call_entered *record;
	struct room room;
	struct call *call;

	if (!watched || !plan || !regs)
		return 0;
	if (plan->entry[0].kind == PART_NONE) {
		record = reserve(cpu, is_decided ? KIND_syscall_entry : KIND_syscall_undecided, watched->number,
				 sizeof(*record));
		if (!record)
			return 0;
		set_entered(&record->head, watched);
		copy_arguments(record->arguments, regs, watched->number);
		end(record);
		return 1;
	}
	call = reserve_large(cpu, is_decided ? KIND_syscall_entry_parts : KIND_syscall_undecided_parts,
			     watched->number, sizeof(*call), &room);
	if (!call)
		return 0;
	set_entered(&call->head, watched);
	call->result = 0;
	copy_arguments(call->arguments, regs, watched->number);
	end_with_parts(cpu, call, plan->entry, &room);
	return 1;
}

/* Sends the entry of a call that may take longer, unless that has been done. */
INLINE void send_held(struct task_struct *task)
{
	struct watched *watched = bpf_task_storage_get(&watched_calls, task, 0, 0);

	if (!watched || __sync_val_compare_and_swap(&watched->state, IS_HELD, IS_SENT) != IS_HELD)
		return;
	if (!send_watched(task, watched, 0))
		watched->state = IS_LOST;
}

/* Starts to watch a call; returns whether its entry is recorded now. */
INLINE bool watch_call(struct task_struct *task, u16 number, const struct plan *plan)
{
	bool is_wanted = is_on && thread_is_wanted(task);
	struct watched *watched = bpf_task_storage_get(&watched_calls, task, 0, is_wanted ? STORAGE_CREATE : 0);

	if (!watched || !is_wanted) {
		if (watched)
			watched->state = NOT_WATCHED;
		if (is_wanted)
			count_loss(bpf_get_smp_processor_id());
		else if (is_on)
			count_left_out();
		return 0;
	}
	if (!where.has_outcome) {
		watched->state = IS_WANTED;
		return 1;
	}
	watched->state = NOT_WATCHED;
	watched->cpu = bpf_get_smp_processor_id();
	notice_switch(watched->cpu, task);
	watched->number = number;
	if (contexts.bytes)
		copy_context(watched->context);
	watched->entered = bpf_ktime_get_ns();
	__sync_lock_test_and_set(&watched->state, IS_HELD);
	if (plan->changes_arguments)
		send_held(task);
	return 0;
}

/* Decides about the call that returns; returns whether its exit is recorded. */
INLINE bool decide_call(struct task_struct *task, s64 result)
{
	struct watched *watched = bpf_task_storage_get(&watched_calls, task, 0, 0);
	u64 duration;
	bool is_wanted;
	u32 state;

	/* The call began before the recording, or its thread is not selected. */
	if (!watched)
		return 0;
	state = __sync_lock_test_and_set(&watched->state, NOT_WATCHED);
	if (!where.has_outcome || state == NOT_WATCHED)
		return state == IS_WANTED;
	duration = bpf_ktime_get_ns() - watched->entered;
	is_wanted = HOLDS(duration, duration) && HOLDS(ret, result);
	if (state == IS_SENT) {
		if (where.hold_keeps && duration >= where.hold_ns)
			is_wanted = 1;
		send_decision(watched, is_wanted);
	}
	if (!is_wanted)
		count_left_out();
	else if (state == IS_HELD)
		send_watched(task, watched, 1);
	return is_wanted;
}

SEC("tp_btf/sched_switch")
int where_on_sched_switch(u64 *args)
{
	send_held((struct task_struct *)args[1]);
	return 0;
}

/* Finds calls that compute for a long time. */
SEC("perf_event")
int where_on_clock(void *context)
{
	send_held(bpf_get_current_task_btf());
	return 0;
}

SEC("tp_btf/sched_process_exit")
int where_on_sched_process_exit(u64 *args)
{
	end_watched((struct task_struct *)args[0]);
	return 0;
}

SEC("tp_btf/sys_enter")
int on_sys_enter(u64 *args)
{
	struct pt_regs *regs = (void *)args[0];
	struct task_struct *task = bpf_get_current_task_btf();
	u16 number = number_of(task, args[1]);
	struct plan *plan = plan_of(number);

	if (!plan || !is_target(task->tgid))
		return 0;
	if (where.is_used && !watch_call(task, number, plan))
		return 0;
	if (plan->entry[0].kind == PART_NONE)
		return send_entry(task, regs, number);
	return send_with_parts(task, regs, 0, KIND_syscall_entry_parts, number, plan->entry);
}

SEC("tp_btf/sys_exit")
int on_sys_exit(u64 *args)
{
	struct pt_regs *regs = (void *)args[0];
	struct task_struct *task = bpf_get_current_task_btf();
	u16 number = number_left(task, regs);
	struct plan *plan = plan_of(number);

	if (!plan || !is_target(task->tgid))
		return 0;
	if (where.is_used && !decide_call(task, args[1]))
		return 0;
	if (!plan->exit_has_arguments)
		return send_exit(task, args[1], number);
	return send_with_parts(task, regs, args[1], KIND_syscall_exit_parts, number, plan->exit);
}
