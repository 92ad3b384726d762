/* Events that are chosen by name: tracepoints, functions of programs and of the kernel, USDT
 * probes.
 *
 * One program for each type of probe serves all probes, so that no code is generated: the cookie of
 * an attachment is an index in `chosen`, whose element describes the values to copy. */
#pragma once

#include "running.h"
#include "targets.h"

struct chosen_argument {
	/* The constant, the displacement from the register, or the offset of a dynamic field. */
	s64 value;
	/* Displacements of the second and third load of a chain. */
	s32 second;
	s32 third;
	/* Offsets in struct pt_regs, or NO_REGISTER. */
	u16 base;
	u16 index;
	u8 source;
	/* Bytes in memory: 1, 2, 4 or 8. */
	u8 size;
	/* The index is shifted left by this number of bits. */
	u8 shift;
	u8 padding;
};
_Static_assert(sizeof(struct chosen_argument) == CHOSEN_ARGUMENT_SIZE, "CHOSEN_ARGUMENT_SIZE in shared.h");

struct chosen {
	/* Id of the event class. */
	u16 kind;
	/* The probe is in user space, not in the kernel. */
	u8 is_user;
	/* Number of arguments; for a tracepoint, of dynamic fields. */
	u8 count;
	/* For a tracepoint: bytes up to the end of the last field of constant size. */
	u32 size;
	/* Begin and end of each range of the function's code, relative to the probe. */
	s32 parts[MOST_EXIT_PARTS][2];
	/* EXIT_... */
	u8 exit;
	/* The tracepoint is recorded whichever process runs. */
	u8 of_all;
	u8 padding[6];
	struct chosen_argument arguments[MOST_CHOSEN_ARGUMENTS];
};
_Static_assert(sizeof(struct chosen) == CHOSEN_SIZE, "CHOSEN_SIZE in shared.h");

struct {
	MAP_INT(type, MAP_ARRAY);
	/* Set by the loader. */
	MAP_INT(max_entries, 1);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct chosen);
} chosen SEC(".maps");

INLINE struct chosen *chosen_by_cookie(void *context)
{
	u32 index = bpf_get_attach_cookie(context);

	return bpf_map_lookup_elem(&chosen, &index);
}

/* The tracepoint's record follows, except its first eight bytes: instead of the common fields they
 * contain a pointer, with which the kernel has overwritten them before the program runs. */
struct chosen_tracepoint {
	struct head head;
	s32 tid;
	s32 pid;
} PACKED;

SEC("tracepoint")
int on_chosen_tracepoint(void *context)
{
	struct chosen *event = chosen_by_cookie(context);
	u32 cpu = bpf_get_smp_processor_id();
	u64 numbers = bpf_get_current_pid_tgid();
	struct chosen_tracepoint *record;
	u64 size;

	if (!is_on || !event || (!event->of_all && !is_target(numbers >> 32)))
		return 0;
	size = event->size;
	for (int i = 0; i < MOST_CHOSEN_ARGUMENTS; i++) {
		struct chosen_argument *field = &event->arguments[i];
		u32 location = 0;
		u64 end;

		if (i >= event->count)
			break;
		bpf_probe_read_kernel(&location, sizeof(location), context + (u16)field->value);
		end = (location & 0xffff) + (location >> 16);
		if (field->source == SOURCE_FIELD)
			end += (u16)field->value + sizeof(location);
		if (end > size)
			size = end;
	}
	if (size > MOST_TRACEPOINT)
		size = MOST_TRACEPOINT;
	record = reserve(cpu, event->kind, 0, sizeof(*record) + size);
	if (!record)
		return 0;
	record->tid = numbers;
	record->pid = numbers >> 32;
	bpf_probe_read_kernel((void *)record + sizeof(*record), size, context);
	complete(record, sizeof(*record) + size, room_of(sizeof(*record) + size));
	return 0;
}

/* Values of arguments follow, eight bytes each. */
struct chosen_hit {
	struct head head;
	s32 tid;
	s32 pid;
	u64 ip;
	u64 values[MOST_CHOSEN_ARGUMENTS];
} PACKED;

/* Offset in struct pt_regs, a stable interface (arch/.../include/uapi/asm/ptrace.h). */
#if defined(__TARGET_ARCH_x86)
#define INSTRUCTION_POINTER 128
#define FLAGS 144
#define STACK_POINTER 152
#else
#define INSTRUCTION_POINTER 256
#define FLAGS 264
#define STACK_POINTER 248
#endif

INLINE u64 register_at(struct pt_regs *registers, u16 offset)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, sizeof(value), (void *)registers + offset);
	return value;
}

/* Returns zero if the memory cannot be read. */
INLINE u64 load(bool is_user, u64 address, u32 size)
{
	u64 value = 0;

	if (size > sizeof(value))
		size = sizeof(value);
	if (is_user)
		bpf_probe_read_user(&value, size, (void *)address);
	else
		bpf_probe_read_kernel(&value, size, (void *)address);
	return value;
}

/* Not inlined, so that the verifier checks it once for all arguments. */
__attribute__((noinline)) static u64 chosen_value(struct pt_regs *registers, struct chosen_argument *argument,
						  bool is_user)
{
	u64 value;

	if (!argument)
		return 0;
	value = argument->value;
	if (argument->source == SOURCE_CONSTANT)
		return value;
	if (argument->base != NO_REGISTER)
		value += register_at(registers, argument->base);
	if (argument->source == SOURCE_REGISTER)
		return value;
	if (argument->index != NO_REGISTER)
		value += register_at(registers, argument->index) << (argument->shift & 3);
	if (argument->source == SOURCE_CHAIN) {
		value = load(is_user, value, sizeof(value)) + argument->second;
		value = load(is_user, value, sizeof(value)) + argument->third;
	}
	return load(is_user, value, argument->size);
}

/* True if a conditional jump of x86 is taken, by its condition code ("Condition test field" of the
 * instruction set): odd codes negate even ones. */
INLINE bool is_taken(u64 flags, u8 number)
{
	bool carry = flags & (1 << 0);
	bool zero = flags & (1 << 6);
	bool sign = flags & (1 << 7);
	bool overflow = flags & (1 << 11);
	bool is = 0;

	switch (number >> 1) {
	case 0: is = overflow; break;
	case 1: is = carry; break;
	case 2: is = zero; break;
	case 3: is = carry || zero; break;
	case 4: is = sign; break;
	case 5: is = flags & (1 << 2); break;
	case 6: is = sign != overflow; break;
	case 7: is = zero || sign != overflow; break;
	}
	return is != (number & 1);
}

/* Calls whose return is lost: the kernel's return probes track at most MOST_NESTED nested calls per
 * thread. */
u64 omitted_returns SEC(".data.omitted") = 0;

/* MAX_URETPROBE_DEPTH */
#define MOST_NESTED 64

INLINE void count_omitted(void)
{
	struct uprobe_task *task = bpf_get_current_task_btf()->utask;

	if (task && task->depth >= MOST_NESTED)
		__sync_fetch_and_add(&omitted_returns, 1);
}

/* True if this execution of the probed instruction ends the function. */
INLINE bool leaves(struct pt_regs *registers, struct chosen *event)
{
	s64 to;

	if (event->exit == EXIT_ALWAYS)
		return 1;
	if (event->exit != EXIT_OUTSIDE)
		return is_taken(register_at(registers, FLAGS), event->exit - EXIT_CONDITION);
	to = chosen_value(registers, &event->arguments[0], 1) - register_at(registers, INSTRUCTION_POINTER);
	for (int i = 0; i < MOST_EXIT_PARTS; i++)
		if (to >= event->parts[i][0] && to < event->parts[i][1])
			return 0;
	return 1;
}

INLINE int hit(struct pt_regs *registers)
{
	struct chosen *event = chosen_by_cookie(registers);
	u32 cpu = bpf_get_smp_processor_id();
	u64 numbers = bpf_get_current_pid_tgid();
	struct chosen_hit *record;
	u64 size;

	if (!is_on || !event || !is_target(numbers >> 32))
		return 0;
	if (event->exit == EXIT_OMITTED) {
		count_omitted();
		return 0;
	}
	if (event->exit != EXIT_NONE && !leaves(registers, event))
		return 0;
	/* In a kernel function a switch may be in progress. */
	if (event->is_user)
		notice_switch(cpu, bpf_get_current_task_btf());
	size = offset_of(struct chosen_hit, values) + event->count * sizeof(u64);
	record = reserve(cpu, event->kind, 0, size);
	if (!record)
		return 0;
	record->tid = numbers;
	record->pid = numbers >> 32;
	record->ip = register_at(registers, INSTRUCTION_POINTER);
	/* At the end of a function the stack pointer points to the return address. */
	if (event->exit != EXIT_NONE)
		record->ip = load(1, register_at(registers, STACK_POINTER), sizeof(u64));
	for (int i = 0; i < MOST_CHOSEN_ARGUMENTS; i++) {
		if (i >= event->count)
			break;
		record->values[i] = chosen_value(registers, &event->arguments[i], event->is_user);
	}
	complete(record, size, room_of(size));
	return 0;
}

SEC("uprobe")
int on_chosen_uprobe(struct pt_regs *registers)
{
	return hit(registers);
}
