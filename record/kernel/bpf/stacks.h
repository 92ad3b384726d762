/* Call stacks: who wants them, how they are taken, and those of CPU time. */
#pragma once

#include "ring.h"
#include "sched.h"
#include "targets.h"

/* What is set before loading. */
struct stack_options {
	/* Waits that are shorter are passed over. */
	u64 threshold_ns;
	/* Frames of the program that are taken. */
	u32 depth;
	/* Stacks of all processes that are wanted, not only signals for those that take their own. */
	u8 takes_stacks;
	/* The kernel lets a thread do something when it goes back to its program. */
	u8 can_resume;
};

const volatile struct stack_options stack_options SEC(".rodata.stacks") = {};

/* Processes that take their own stacks, with the wait in nanoseconds from which on they want to know of it. */
struct {
	MAP_INT(type, MAP_HASH);
	MAP_INT(max_entries, 65536);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u64);
} registered SEC(".maps");

/* `status` of a stack, as in record/stacks. */
enum stack_status { STACK_WHOLE, STACK_CUT, STACK_BROKEN };

/* No system call. */
#define NO_CALL (-1)

struct stack {
	struct head head;
	s32 tid;
	s32 pid;
	struct comm comm;
	u64 wait_ns;
	s32 syscall;
	u32 kernel_count;
	u64 kernel[MOST_KERNEL_FRAMES];
	u32 status;
	u32 user_count;
	u64 user[MOST_USER_FRAMES];
} PACKED;

/* The system call that a thread is in: the instruction leaves its own end in a register. */
INLINE s32 call_of(struct task_struct *task)
{
	struct pt_regs *regs = task->mm ? bpf_task_pt_regs(task) : 0;

	if (!regs)
		return NO_CALL;
#if defined(__TARGET_ARCH_arm64)
	return regs->syscallno;
#else
	return regs->cx == regs->ip ? (s32)regs->orig_ax : NO_CALL;
#endif
}

/* Frames, of a number of bytes or an error. */
INLINE u32 frames(s64 bytes, u32 most)
{
	u64 count = bytes > 0 ? (u64)bytes / sizeof(u64) : 0;

	return count > most ? most : count;
}

INLINE u32 user_bytes(void)
{
	u32 depth = stack_options.depth;

	return (depth < MOST_USER_FRAMES ? depth : MOST_USER_FRAMES) * sizeof(u64);
}

INLINE void set_user(struct stack *stack, s64 bytes)
{
	stack->user_count = frames(bytes, MOST_USER_FRAMES);
	stack->status = stack->user_count == 0                     ? STACK_BROKEN
			: stack->user_count >= stack_options.depth ? STACK_CUT
								   : STACK_WHOLE;
}

/* The stack of the program, which must be the one that runs. */
INLINE void take_user(struct stack *stack, struct task_struct *task)
{
	set_user(stack, task->mm ? bpf_get_task_stack(task, stack->user, user_bytes(), USER_STACK) : 0);
}

INLINE void send_stack(struct stack *stack, u16 kind)
{
	u32 count = stack->user_count;

	if (count > MOST_USER_FRAMES)
		count = MOST_USER_FRAMES;
	send(&stack->head, kind, 0, offset_of(struct stack, user) + count * sizeof(u64));
}

/* Where the stack is put together: an interrupt comes after another one on its CPU. */
struct {
	MAP_INT(type, MAP_PERCPU_ARRAY);
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct stack);
} clock_scratch SEC(".maps");

SEC("perf_event")
int stacks_on_clock(void *context)
{
	u64 ids = bpf_get_current_pid_tgid();
	u32 process = ids >> 32, first = 0;
	struct stack *stack = bpf_map_lookup_elem(&clock_scratch, &first);

	/* The thread that a CPU has when it has nothing to do is number 0. */
	if (!is_on || !stack || !(u32)ids || !is_target(process) || bpf_map_lookup_elem(&registered, &process))
		return 0;
	stack->tid = ids;
	stack->pid = process;
	bpf_get_current_comm(&stack->comm, sizeof(stack->comm));
	stack->wait_ns = 0;
	stack->kernel_count = frames(bpf_get_stack(context, stack->kernel, sizeof(stack->kernel), 0), MOST_KERNEL_FRAMES);
	stack->syscall = stack->kernel_count ? call_of(bpf_get_current_task_btf()) : NO_CALL;
	set_user(stack, bpf_get_stack(context, stack->user, user_bytes(), USER_STACK));
	send_stack(stack, KIND_tracebraid_cpu_stack);
	return 0;
}
