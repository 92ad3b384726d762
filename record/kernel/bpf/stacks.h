/* Call stacks: selection and recording, and sampling of CPU time.
 *
 * The stack of a program is copied with its registers, and unwound by the recorder with the unwind
 * tables of the program's files (record/unwind). Programs need no preparation and receive no
 * signal. If frame pointers are requested instead (`copy_bytes` is 0), and on other machines than
 * x86-64, the kernel follows frame pointers. */
#pragma once

#include "python.h"
#include "ring.h"
#include "sched.h"
#include "targets.h"

/* Options, set before loading. */
struct stack_options {
	/* Shorter waits are ignored. */
	u64 threshold_ns;
	/* Maximum number of frames of the program if the kernel follows frame pointers. */
	u32 depth;
	/* Maximum number of bytes of the program's stack that are copied; 0 for frame pointers. */
	u32 copy_bytes;
	/* Size of the buffer for copies in bytes: `copy_bytes`, but at least USUAL_COPY. */
	u32 copy_room;
	/* Maximum number of bytes that are copied of a mapping that is larger than any stack. */
	u32 heap_bytes;
	/* The kernel supports task work that runs when a thread returns to its program. */
	u8 can_resume;
};

const volatile struct stack_options stack_options SEC(".rodata.stacks") = {};

/* `status` of a stack recorded by frame pointers. */
enum stack_status { STACK_WHOLE, STACK_CUT, STACK_BROKEN };

/* Not in a system call. */
#define NO_CALL (-1)

/* The part of a stack that is known when the kernel switches to a thread. */
struct stack_top {
	s32 tid;
	s32 pid;
	struct comm comm;
	u64 wait_ns;
	s32 syscall;
	u32 kernel_count;
	u64 kernel[MOST_KERNEL_FRAMES];
} PACKED;

/* Bytes after a copy: for Python functions, and for the last copied page. */
#define COPY_MARGIN 4096
_Static_assert(COPY_MARGIN >= MOST_PYTHON_FRAMES * sizeof(u64), "room for Python functions");

/* A copy of a stack, or its return addresses. */
struct stack {
	struct head head;
	struct stack_top top;
	/* COPY_..., or a status. */
	u32 state;
	/* Number of bytes or addresses. */
	u32 count;
	union {
		u64 user[MOST_USER_FRAMES];
		struct {
			/* In the order of DWARF; see `copy_registers`. */
			u64 registers[REGISTERS];
			/* Address of the stack that a signal handler on an alternate stack has interrupted, and the
			 * number of bytes of that stack, which are the last bytes of the copy. */
			u64 interrupted;
			u64 interrupted_count;
			/* Number of Python functions after the copy. */
			u64 python_count;
			u8 copy[MOST_COPY + COPY_MARGIN];
		};
	};
} PACKED;

/* The system call in which a thread is: the syscall instruction leaves its end address in a
 * register. */
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

/* Number of frames, from a size in bytes or an error. */
INLINE u32 frames(s64 bytes, u32 most)
{
	u64 count = bytes > 0 ? (u64)bytes / sizeof(u64) : 0;

	return count > most ? most : count;
}

/* Return addresses of the running thread's program by frame pointers. */
INLINE void follow_frames(struct stack *stack, struct task_struct *task)
{
	u32 depth = stack_options.depth < MOST_USER_FRAMES ? stack_options.depth : MOST_USER_FRAMES;
	s64 bytes = task->mm ? bpf_get_task_stack(task, stack->user, depth * sizeof(u64), USER_STACK) : 0;

	stack->count = frames(bytes, MOST_USER_FRAMES);
	stack->state = stack->count == 0 ? STACK_BROKEN : stack->count >= depth ? STACK_CUT : STACK_WHOLE;
}

#if defined(__TARGET_ARCH_x86)
INLINE void copy_registers(u64 *to, struct pt_regs *regs)
{
	to[0] = regs->ax;
	to[1] = regs->dx;
	to[2] = regs->cx;
	to[3] = regs->bx;
	to[4] = regs->si;
	to[5] = regs->di;
	to[6] = regs->bp;
	to[7] = regs->sp;
	to[8] = regs->r8;
	to[9] = regs->r9;
	to[10] = regs->r10;
	to[11] = regs->r11;
	to[12] = regs->r12;
	to[13] = regs->r13;
	to[14] = regs->r14;
	to[15] = regs->r15;
	to[16] = regs->ip;
}

struct range {
	u64 begin;
	u64 end;
};

/* By thread: the mapping in which its stack was last found. Only a bound, since it may have
 * changed. */
struct {
	MAP_INT(type, MAP_TASK_STORAGE);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, struct range);
} stack_ranges SEC(".maps");

static long take_range(struct task_struct *task, struct vm_area_struct *vma, struct range *range)
{
	range->begin = vma->vm_start;
	range->end = vma->vm_end;
	return 0;
}

/* Maximum size of the main thread's stack; no usual machine exceeds it. */
#define MOST_MAIN_STACK (64ULL << 20)
/* Bytes above the initial stack pointer that the first function may access. */
#define ABOVE_START 64
/* Stacks of goroutines and of other user-level threads lie in heaps. Their ends are unknown, and
 * they are small: at most `heap_bytes` are copied of a mapping larger than this limit. */
#define MOST_STACK (128ULL << 20)

/* Upper bound of the bytes from the stack pointer to the end of the stack. Sets `is_cut` if the
 * result is smaller. */
INLINE u64 stack_size(struct task_struct *task, u64 sp, bool *is_cut)
{
	u64 start = task->mm->start_stack;
	struct range found = {};
	struct range *range;

	if (sp <= start && start - sp < MOST_MAIN_STACK)
		return start - sp + ABOVE_START;
	*is_cut = 1;
	range = bpf_task_storage_get(&stack_ranges, task, 0, STORAGE_CREATE);
	if (!range)
		return stack_options.heap_bytes;
	if (sp < range->begin || sp >= range->end) {
		/* Fails while another thread changes the mappings. */
		if (bpf_find_vma(task, sp, take_range, &found, 0) || sp < found.begin || sp >= found.end)
			return stack_options.heap_bytes;
		*range = found;
	}
	if (range->end - range->begin > MOST_STACK && range->end - sp > stack_options.heap_bytes)
		return stack_options.heap_bytes;
	*is_cut = 0;
	return range->end - sp;
}

#define PAGE 4096

/* A copy of a stack, page by page. */
struct page_copy {
	struct stack *stack;
	u64 from;
	/* Offset in the copy, and size in bytes. */
	u32 at;
	u32 wanted;
};

/* Computes all values from `index` without a counter, each of whose values the verifier
 * would track. */
static long copy_page(u32 index, struct page_copy *copy)
{
	u32 skew = copy->from & (PAGE - 1);
	u32 begin = index ? index * PAGE - skew : 0, end = (index + 1) * PAGE - skew;
	u32 at = copy->at + begin, size;

	if (end > copy->wanted)
		end = copy->wanted;
	size = end - begin;
	if (begin >= end || size > PAGE || at > stack_options.copy_room)
		return 1;
	/* A page that is not in memory becomes zeros: most such pages lie in large frames and were never
	 * touched, and the frames beyond them can be unwound. */
	bpf_probe_read_user(copy->stack->copy + at, size, (void *)(copy->from + begin));
	return 0;
}

/* Copies a stack page by page if some page is not in memory. */
INLINE void copy_pages(struct stack *stack, u32 at, u64 from, u32 wanted)
{
	struct page_copy copy = { .stack = stack, .from = from, .at = at, .wanted = wanted };

	bpf_loop(MOST_COPY / PAGE + 2, copy_page, &copy, 0);
	stack->state |= COPY_FAILED;
}

/* Upper bound of the size, in words, of the kernel's signal frame at the end of an alternate stack,
 * with all registers that processors have. */
#define SIGNAL_FRAME_WORDS 2048
/* Words in `struct ucontext`: from the address of the alternate stack to its size, and to the stack
 * pointer. */
#define UCONTEXT_SIZE 2
#define UCONTEXT_SP 18
/* Maximum number of bytes of an alternate stack that are copied if the interrupted stack is copied
 * too. */
#define MOST_ALTERNATE (USUAL_COPY / 2)

/* A search for the stack pointer that a signal handler on an alternate stack has interrupted. */
struct interrupted_search {
	struct stack *stack;
	/* Copied bytes of the alternate stack, its first address, and its size. */
	u32 bytes;
	u64 begin;
	u64 size;
	u64 found;
};

static long look_at_word(u32 index, struct interrupted_search *search)
{
	u32 at = search->bytes - (UCONTEXT_SP + 1 + index) * sizeof(u64);
	u64 *words;

	if (at > MOST_ALTERNATE - (UCONTEXT_SP + 1) * sizeof(u64))
		return 1;
	words = (u64 *)(search->stack->copy + at);
	if (words[0] != search->begin || words[UCONTEXT_SIZE] != search->size ||
	    words[UCONTEXT_SP] - search->begin < search->size)
		return 0;
	search->found = words[UCONTEXT_SP];
	return 1;
}

/* The stack pointer that a signal handler on an alternate stack has interrupted. The kernel has
 * stored it, with address and size of the alternate stack, near the end of that stack, of which
 * `bytes` have been copied. 0 if it is not found. */
INLINE u64 find_interrupted(struct stack *stack, u32 bytes, struct task_struct *task)
{
	struct interrupted_search search = {
		.stack = stack,
		.bytes = bytes,
		.begin = task->sas_ss_sp,
		.size = task->sas_ss_size,
	};

	bpf_loop(SIGNAL_FRAME_WORDS, look_at_word, &search, 0);
	return search.found;
}

/* Appends the stack that a signal handler on an alternate stack has interrupted. */
INLINE void copy_interrupted(struct stack *stack, struct task_struct *task)
{
	u32 bytes = stack->count, most = stack_options.copy_room - MOST_ALTERNATE;
	bool is_cut = 0;
	u64 sp, size;

	if (bytes > MOST_ALTERNATE)
		return;
	sp = find_interrupted(stack, bytes, task);
	if (!sp)
		return;
	size = stack_size(task, sp, &is_cut);
	if (size > most) {
		size = most;
		is_cut = 1;
	}
	if (is_cut)
		stack->state |= COPY_IS_CUT;
	if (bpf_probe_read_user(stack->copy + bytes, size, (void *)sp))
		copy_pages(stack, bytes, sp, size);
	stack->interrupted = sp;
	stack->interrupted_count = size;
	stack->count = bytes + size;
}

/* Copies the running thread's registers and stack. */
INLINE void copy_stack(struct stack *stack, struct task_struct *task)
{
	struct pt_regs *regs = task->mm ? bpf_task_pt_regs(task) : 0;
	u32 most = stack_options.copy_bytes;
	bool is_alternate, is_cut = 0;
	u64 size;
	u32 bytes;

	stack->state = COPY_FAILED;
	stack->count = 0;
	stack->interrupted_count = 0;
	stack->python_count = 0;
	/* Threads that the kernel has started for a program have no registers there. */
	if (!regs || !regs->sp || !regs->ip) {
		stack->registers[16] = 0;
		return;
	}
	copy_registers(stack->registers, regs);
	is_alternate = regs->sp - task->sas_ss_sp < task->sas_ss_size;
	size = is_alternate ? task->sas_ss_sp + task->sas_ss_size - regs->sp :
			      stack_size(task, regs->sp, &is_cut);
	bytes = size < most ? size : most;
	if (bytes > stack_options.copy_room)
		return;
	stack->state = is_cut || size > most ? COPY_IS_CUT : 0;
	if (bpf_probe_read_user(stack->copy, bytes, (void *)regs->sp))
		copy_pages(stack, 0, regs->sp, bytes);
	stack->count = bytes;
	if (is_alternate)
		copy_interrupted(stack, task);
}

/* Appends Python functions to the copy; returns the total number of bytes. */
INLINE u32 add_python(struct stack *stack, struct task_struct *task)
{
	u32 process = task->tgid, count = stack->count;
	struct python *python = bpf_map_lookup_elem(&pythons, &process);

	if (count > stack_options.copy_room)
		return 0;
	if (python)
		follow_python((u64 *)(stack->copy + count), &stack->python_count, task, python);
	return count + stack->python_count * sizeof(u64);
}
#endif

/* Sends the stack of the running thread, whose top is known. */
INLINE void take_and_send(struct stack *stack, struct task_struct *task, u16 kind, u16 copied_kind)
{
	u32 count;

#if defined(__TARGET_ARCH_x86)
	if (stack_options.copy_bytes) {
		copy_stack(stack, task);
		count = add_python(stack, task);
		if (count <= stack_options.copy_room + COPY_MARGIN)
			send(&stack->head, copied_kind, 0, offset_of(struct stack, copy) + count);
		return;
	}
#endif
	follow_frames(stack, task);
	count = stack->count;
	if (count <= MOST_USER_FRAMES)
		send(&stack->head, kind, 0, offset_of(struct stack, user) + count * sizeof(u64));
}

/* Sends a stack without user-space frames. */
INLINE void send_top(struct stack *stack, u16 kind)
{
	stack->count = 0;
	stack->state = STACK_BROKEN;
	send(&stack->head, kind, 0, offset_of(struct stack, user));
}

/* A buffer for each CPU in which a stack is built. Per-CPU maps do not allow elements of this size.
 * The loader shortens each element by the difference of MOST_COPY and `copy_room`. */
#define SCRATCH(name) \
	struct { \
		MAP_INT(type, MAP_ARRAY); \
		MAP_INT(max_entries, MOST_CPUS); \
		MAP_TYPE(key, u32); \
		MAP_TYPE(value, struct stack); \
	} name SEC(".maps")

/* Clock interrupts do not nest on a CPU. */
SCRATCH(clock_scratch);

SEC("perf_event")
int stacks_on_clock(void *context)
{
	u64 ids = bpf_get_current_pid_tgid();
	u32 process = ids >> 32, cpu = bpf_get_smp_processor_id();
	struct task_struct *task = bpf_get_current_task_btf();
	struct stack *stack;
	struct stack_top *top;

	/* The idle thread of a CPU has id 0. */
	if (!is_on || !(u32)ids || !is_target(process))
		return 0;
	stack = bpf_map_lookup_elem(&clock_scratch, &cpu);
	if (!stack)
		return 0;
	top = &stack->top;
	top->tid = ids;
	top->pid = process;
	copy_comm(&top->comm, task);
	top->wait_ns = 0;
	top->kernel_count = frames(bpf_get_stack(context, top->kernel, sizeof(top->kernel), 0), MOST_KERNEL_FRAMES);
	top->syscall = top->kernel_count ? call_of(task) : NO_CALL;
	take_and_send(stack, task, KIND_tracebraid_cpu_stack, KIND_copied_cpu_stack);
	return 0;
}
