/* Long waits, found where a thread comes back to a CPU: a system call that does not wait costs nothing.
 *
 * A thread may want to be told, by a signal, and take its own stack (record/stacks); of others the stack is taken
 * here. Both happen when the thread goes back to its program: a signal that was sent at the switch would end some
 * system calls too early, and only the stack of the program that runs can be read. */
#pragma once

#include "stacks.h"

/* The kernel's own types, which it knows by their names; that of maps must not be a mere name. */
struct bpf_map {
	u32 id;
};

struct bpf_task_work {
	u64 __opaque;
} __attribute__((aligned(8)));

enum pid_type { PIDTYPE_PID };

KFUNC int bpf_send_signal_task(struct task_struct *task, int signal, enum pid_type type, u64 value);
KFUNC int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work, void *map,
					     int (*callback)(struct bpf_map *map, void *key, void *value), void *program);

#define SIGNAL_TRAP 5
/* The value that comes with the signal: that it is ours, and the nanoseconds. */
#define SIGNAL_OURS (0x7b57ULL << 48)
#define SIGNAL_NS ((1ULL << 48) - 1)

/* By thread: when it began to wait; 0 while it does not. */
struct {
	MAP_INT(type, MAP_TASK_STORAGE);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, u64);
} away_since SEC(".maps");

/* A thread that has waited long, or may have. */
struct waited {
	struct bpf_task_work work;
	/* It has not been back in its program since. */
	u32 is_pending;
	u32 signals;
	struct stack stack;
};

struct {
	MAP_INT(type, MAP_HASH);
	MAP_INT(max_entries, 32768);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct waited);
} waits SEC(".maps");

/* Too large for the stack of a program. */
const struct waited no_wait SEC(".rodata.waits") = {};

/* The wait from which on somebody wants to know of it; 0 if nobody does. */
INLINE u64 threshold_of(struct task_struct *task, bool *signals)
{
	u32 process = task->tgid;
	u64 *threshold = bpf_map_lookup_elem(&registered, &process);

	*signals = threshold;
	if (threshold)
		return ~*threshold ? *threshold : 0;
	return stack_options.takes_stacks && task->mm && is_target(process) ? stack_options.threshold_ns : 0;
}

INLINE struct waited *waited_of(u32 tid)
{
	struct waited *waited = bpf_map_lookup_elem(&waits, &tid);

	if (waited)
		return waited;
	bpf_map_update_elem(&waits, &tid, &no_wait, BPF_ANY);
	return bpf_map_lookup_elem(&waits, &tid);
}

/* In the thread, on its way back to its program. */
static int on_resume(struct bpf_map *map, void *key, void *value)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct waited *waited = value;
	u32 process = task->tgid;

	waited->is_pending = 0;
	if (!waited->signals) {
		waited->stack.syscall = call_of(task);
		take_user(&waited->stack, task);
		send_stack(&waited->stack, KIND_tracebraid_syscall_stack);
	} else if (bpf_map_lookup_elem(&registered, &process)) {
		/* Still: a program that it has become meanwhile would be killed. */
		bpf_send_signal_task(task, SIGNAL_TRAP, PIDTYPE_PID, SIGNAL_OURS | (waited->stack.wait_ns & SIGNAL_NS));
	}
	return 0;
}

/* This thread leaves its CPU to wait. */
INLINE void leave(struct task_struct *task, u64 now)
{
	u64 *since = bpf_task_storage_get(&away_since, task, 0, 0);
	struct waited *waited;
	bool signals;

	if (!since) {
		if (!threshold_of(task, &signals))
			return;
		since = bpf_task_storage_get(&away_since, task, 0, STORAGE_CREATE);
	}
	if (since)
		*since = now;
	if (stack_options.can_resume || !(waited = waited_of(task->pid)))
		return;
	/* There is no later time at which it could be looked at. */
	waited->stack.syscall = call_of(task);
	take_user(&waited->stack, task);
}

/* This thread ran, and wants to run on. Some kernels do not tell of all switches: if it came back unseen, nobody knows
 * how long it waited, and what it does now is not what it waited for. */
INLINE void stay(struct task_struct *task)
{
	u64 *since = bpf_task_storage_get(&away_since, task, 0, 0);

	if (since)
		*since = 0;
}

/* That thread has waited long. */
INLINE void tell(struct task_struct *task, u64 ns, bool signals)
{
	struct waited *waited;
	struct stack *stack;

	/* One that ends has no program to go back to, and nobody to take its entry away. */
	if (!task->mm)
		return;
	waited = waited_of(task->pid);
	if (!waited) {
		count_loss(bpf_get_smp_processor_id());
		return;
	}
	stack = &waited->stack;
	if (waited->is_pending) {
		/* One system call waits several times: it has one stack. */
		stack->wait_ns += ns;
		return;
	}
	stack->wait_ns = ns;
	waited->signals = signals;
	if (!signals) {
		s64 bytes = bpf_get_task_stack(task, stack->kernel, sizeof(stack->kernel), 0);

		stack->kernel_count = frames(bytes, MOST_KERNEL_FRAMES);
		stack->tid = task->pid;
		stack->pid = task->tgid;
		copy_comm(&stack->comm, task);
	}
	if (!stack_options.can_resume)
		send_stack(stack, KIND_tracebraid_syscall_stack);
	else if (bpf_task_work_schedule_resume_impl(task, &waited->work, &waits, on_resume, 0))
		count_loss(bpf_get_smp_processor_id());
	else
		waited->is_pending = 1;
}

SEC("tp_btf/sched_switch")
int stacks_on_sched_switch(u64 *args)
{
	bool preempted = args[0];
	struct task_struct *prev = (void *)args[1];
	struct task_struct *next = (void *)args[2];
	u32 state = args[3];
	u64 now, ns, threshold;
	u64 *since;
	bool signals;

	if (!is_on)
		return 0;
	now = bpf_ktime_get_ns();
	if (state && !preempted)
		leave(prev, now);
	else
		stay(prev);
	since = bpf_task_storage_get(&away_since, next, 0, 0);
	if (!since || !*since)
		return 0;
	ns = now - *since;
	*since = 0;
	threshold = threshold_of(next, &signals);
	if (threshold && ns >= threshold)
		tell(next, ns, signals);
	return 0;
}

/* A program that becomes another one no longer knows what our signal means. */
SEC("tp_btf/sched_process_exec")
int stacks_on_sched_process_exec(u64 *args)
{
	struct task_struct *task = (void *)args[0];
	u32 process = task->tgid;

	bpf_map_delete_elem(&registered, &process);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int stacks_on_sched_process_exit(u64 *args)
{
	struct task_struct *task = (void *)args[0];
	u32 thread = task->pid;

	bpf_map_delete_elem(&waits, &thread);
	return 0;
}

SEC("tp_btf/sched_process_free")
int stacks_on_sched_process_free(u64 *args)
{
	struct task_struct *task = (void *)args[0];
	u32 process = task->tgid;

	if (task->pid == task->tgid)
		bpf_map_delete_elem(&registered, &process);
	return 0;
}

/* The function of record/stacks by which a process says that it takes its own stacks (`tracebraid_stacks_register`):
 * with the threshold of its waits in nanoseconds, or with the greatest number if it finds them by itself. */
SEC("uprobe")
int stacks_on_register(struct pt_regs *regs)
{
	u32 process = bpf_get_current_pid_tgid() >> 32;
#if defined(__TARGET_ARCH_arm64)
	u64 threshold = regs->regs[0];
#else
	u64 threshold = regs->di;
#endif

	if (!stack_options.can_resume)
		threshold = ~0ULL;
	if (bpf_map_update_elem(&registered, &process, &threshold, BPF_ANY))
		return 0;
	/* The answer, for which the function's caller waits. */
	if (~threshold)
		bpf_send_signal_thread(SIGNAL_TRAP);
	return 0;
}
