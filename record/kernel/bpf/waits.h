/* Long waits, found when a thread gets a CPU again: a system call that does not wait costs nothing.
 *
 * The kernel's part of the stack is taken at the switch to the thread. The user-space part can only
 * be read while the thread itself runs: when it returns to its program or, on kernels without task
 * work for BPF (before 6.18), when it leaves its system call. */
#pragma once

#include "stacks.h"

/* Kernel types that the verifier identifies by name; the type of maps must not be only declared. */
struct bpf_map {
	u32 id;
};

struct bpf_task_work {
	u64 __opaque;
} __attribute__((aligned(8)));

KFUNC int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work, void *map,
					     int (*callback)(struct bpf_map *map, void *key, void *value), void *program);

/* By thread: the time at which it began to wait; 0 if it does not wait. */
struct {
	MAP_INT(type, MAP_TASK_STORAGE);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, u64);
} away_since SEC(".maps");

/* A thread after a long wait. */
struct waited {
	struct bpf_task_work work;
	/* The thread has not returned to its program since. */
	u32 is_pending;
	struct stack_top top;
};

struct {
	MAP_INT(type, MAP_HASH);
	MAP_INT(max_entries, 32768);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct waited);
} waits SEC(".maps");

/* Too large for the stack of a BPF program. */
const struct waited no_wait SEC(".rodata.waits") = {};

/* Guards the buffer of each CPU, since a thread may be preempted while it fills the buffer. */
SCRATCH(waits_scratch);
u32 is_used[MOST_CPUS] SEC(".data.used") = {};

INLINE bool is_wanted(struct task_struct *task)
{
	return task->mm && is_target(task->tgid);
}

INLINE struct waited *waited_of(u32 tid)
{
	struct waited *waited = bpf_map_lookup_elem(&waits, &tid);

	if (waited)
		return waited;
	bpf_map_update_elem(&waits, &tid, &no_wait, BPF_ANY);
	return bpf_map_lookup_elem(&waits, &tid);
}

/* Sends the stack of the wait of the running thread. */
INLINE void send_wait(struct waited *waited, struct task_struct *task)
{
	u32 cpu = bpf_get_smp_processor_id(), key = cpu;
	struct stack *stack = bpf_map_lookup_elem(&waits_scratch, &key);

	waited->is_pending = 0;
	if (!stack || cpu >= MOST_CPUS)
		return;
	if (__sync_lock_test_and_set(&is_used[cpu], 1)) {
		count_loss(cpu);
		return;
	}
	stack->top = waited->top;
	if (stack_options.can_resume || stack->top.syscall != NO_CALL)
		take_and_send(stack, task, KIND_tracebraid_syscall_stack, KIND_copied_syscall_stack);
	else
		send_top(stack, KIND_tracebraid_syscall_stack);
	is_used[cpu] = 0;
}

/* Runs in the thread, on its return to its program. */
static int on_resume(struct bpf_map *map, void *key, void *value)
{
	send_wait(value, bpf_get_current_task_btf());
	return 0;
}

/* The running thread leaves its CPU to wait. */
INLINE void leave(struct task_struct *task, u64 now)
{
	u64 *since = bpf_task_storage_get(&away_since, task, 0, 0);

	if (!since && is_wanted(task))
		since = bpf_task_storage_get(&away_since, task, 0, STORAGE_CREATE);
	if (since)
		*since = now;
}

/* The running thread stays runnable. Some kernels do not report all switches: if its return was not
 * reported, the length of its wait is unknown, and its current stack does not explain the wait. */
INLINE void stay(struct task_struct *task)
{
	u64 *since = bpf_task_storage_get(&away_since, task, 0, 0);

	if (since)
		*since = 0;
}

/* Notes a long wait of a thread. */
INLINE void note_wait(struct task_struct *task, u64 ns)
{
	struct waited *waited;
	struct stack_top *top;

	/* A thread that exits does not return to its program, and its entry would stay. */
	if (!is_wanted(task))
		return;
	waited = waited_of(task->pid);
	if (!waited) {
		count_loss(bpf_get_smp_processor_id());
		return;
	}
	top = &waited->top;
	if (waited->is_pending) {
		/* A system call may wait several times: the waits are added up to one stack. */
		top->wait_ns += ns;
		return;
	}
	top->tid = task->pid;
	top->pid = task->tgid;
	copy_comm(&top->comm, task);
	top->wait_ns = ns;
	top->syscall = call_of(task);
	top->kernel_count = frames(bpf_get_task_stack(task, top->kernel, sizeof(top->kernel), 0), MOST_KERNEL_FRAMES);
	if (stack_options.can_resume &&
	    bpf_task_work_schedule_resume_impl(task, &waited->work, &waits, on_resume, 0)) {
		count_loss(bpf_get_smp_processor_id());
		return;
	}
	waited->is_pending = 1;
}

SEC("tp_btf/sched_switch")
int stacks_on_sched_switch(u64 *args)
{
	bool preempted = args[0];
	struct task_struct *prev = (void *)args[1];
	struct task_struct *next = (void *)args[2];
	u32 state = args[3];
	u64 now, ns;
	u64 *since;

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
	if (ns >= stack_options.threshold_ns)
		note_wait(next, ns);
	return 0;
}

/* For kernels without task work for BPF. A wait in a page fault is sent by the next system call,
 * when the program has moved on: it has the kernel's part only. */
SEC("tp_btf/sys_exit")
int stacks_on_sys_exit(u64 *args)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tid = task->pid;
	struct waited *waited;

	if (!is_on || !bpf_task_storage_get(&away_since, task, 0, 0))
		return 0;
	waited = bpf_map_lookup_elem(&waits, &tid);
	if (waited && waited->is_pending)
		send_wait(waited, task);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int stacks_on_sched_process_exit(u64 *args)
{
	struct task_struct *task = (void *)args[0];
	u32 thread = task->pid;

	bpf_map_delete_elem(&waits, &thread);
	bpf_map_delete_elem(&pythons, &thread);
	return 0;
}

/* A child inherits its parent's interpreter. */
SEC("tp_btf/sched_process_fork")
int stacks_on_sched_process_fork(u64 *args)
{
	struct task_struct *parent = (void *)args[0];
	struct task_struct *child = (void *)args[1];
	u32 from = parent->tgid, to = child->tgid;
	struct python *python = from == to ? 0 : bpf_map_lookup_elem(&pythons, &from);

	if (python)
		bpf_map_update_elem(&pythons, &to, python, BPF_ANY);
	return 0;
}

/* A new program has no interpreter until one is found. */
SEC("tp_btf/sched_process_exec")
int stacks_on_sched_process_exec(u64 *args)
{
	struct task_struct *task = (void *)args[0];
	u32 process = task->tgid;

	bpf_map_delete_elem(&pythons, &process);
	return 0;
}
