/* Interrupts, softirqs and timers. */
#pragma once

#include "running.h"

struct irq_began {
	struct head head;
	s32 irq;
	char name[INTERRUPT_SLOT];
} PACKED;

SEC("tp_btf/irq_handler_entry")
int on_irq_handler_entry(u64 *args)
{
	struct irqaction *action = (void *)args[1];

	BEGIN(record, irq_began, irq_handler_entry);
	record->irq = args[0];
	if (bpf_probe_read_kernel_str(record->name, sizeof(record->name), action->name) < 0)
		record->name[0] = 0;
	end(record);
	return 0;
}

struct irq_ended {
	struct head head;
	s32 irq;
	s32 ret;
} PACKED;

SEC("tp_btf/irq_handler_exit")
int on_irq_handler_exit(u64 *args)
{
	BEGIN(record, irq_ended, irq_handler_exit);
	record->irq = args[0];
	record->ret = args[2];
	end(record);
	return 0;
}

struct vector {
	struct head head;
	u32 vec;
} PACKED;

#define ON_VECTOR(event, name) \
	SEC("tp_btf/" #event) \
	int on_##event(u64 *args) \
	{ \
		BEGIN(record, vector, name); \
		record->vec = args[0]; \
		end(record); \
		return 0; \
	}

ON_VECTOR(softirq_raise, irq_softirq_raise)
ON_VECTOR(softirq_entry, irq_softirq_entry)
ON_VECTOR(softirq_exit, irq_softirq_exit)
#if defined(__TARGET_ARCH_x86)
ON_VECTOR(local_timer_entry, x86_irq_vectors_local_timer_entry)
ON_VECTOR(local_timer_exit, x86_irq_vectors_local_timer_exit)
ON_VECTOR(reschedule_entry, x86_irq_vectors_reschedule_entry)
ON_VECTOR(reschedule_exit, x86_irq_vectors_reschedule_exit)
ON_VECTOR(call_function_entry, x86_irq_vectors_call_function_entry)
ON_VECTOR(call_function_exit, x86_irq_vectors_call_function_exit)
ON_VECTOR(call_function_single_entry, x86_irq_vectors_call_function_single_entry)
ON_VECTOR(call_function_single_exit, x86_irq_vectors_call_function_single_exit)
ON_VECTOR(irq_work_entry, x86_irq_vectors_irq_work_entry)
ON_VECTOR(irq_work_exit, x86_irq_vectors_irq_work_exit)
#endif

struct hrtimer_started {
	struct head head;
	u64 hrtimer;
	u64 function;
	s64 expires;
	s64 softexpires;
	u32 mode;
} PACKED;

SEC("tp_btf/hrtimer_start")
int on_hrtimer_start(u64 *args)
{
	struct hrtimer *timer = (void *)args[0];

	/* Clocks are also started and stopped during a context switch. */
	RESERVE(record, hrtimer_started, timer_hrtimer_start);
	record->hrtimer = args[0];
	record->function = (u64)timer->function;
	record->expires = timer->node.expires;
	record->softexpires = timer->_softexpires;
	record->mode = args[1];
	end(record);
	return 0;
}

struct hrtimer_began {
	struct head head;
	u64 hrtimer;
	s64 now;
	u64 function;
} PACKED;

SEC("tp_btf/hrtimer_expire_entry")
int on_hrtimer_expire_entry(u64 *args)
{
	struct hrtimer *timer = (void *)args[0];

	BEGIN(record, hrtimer_began, timer_hrtimer_expire_entry);
	record->hrtimer = args[0];
	bpf_probe_read_kernel(&record->now, sizeof(record->now), (void *)args[1]);
	record->function = (u64)timer->function;
	end(record);
	return 0;
}

struct pointed {
	struct head head;
	u64 pointer;
} PACKED;

#define ON_POINTER(event, name) \
	SEC("tp_btf/" #event) \
	int on_##event(u64 *args) \
	{ \
		RESERVE(record, pointed, name); \
		record->pointer = args[0]; \
		end(record); \
		return 0; \
	}

ON_POINTER(hrtimer_expire_exit, timer_hrtimer_expire_exit)
ON_POINTER(hrtimer_cancel, timer_hrtimer_cancel)
ON_POINTER(timer_expire_exit, timer_expire_exit)

struct timer_began {
	struct head head;
	u64 timer;
	u64 now;
	u64 function;
	u64 baseclk;
} PACKED;

SEC("tp_btf/timer_expire_entry")
int on_timer_expire_entry(u64 *args)
{
	struct timer_list *timer = (void *)args[0];

	BEGIN(record, timer_began, timer_expire_entry);
	record->timer = args[0];
	record->now = bpf_jiffies64();
	record->function = (u64)timer->function;
	record->baseclk = args[1];
	end(record);
	return 0;
}
