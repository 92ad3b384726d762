/* The way out: a ring for each CPU, records with a head, and a count of what found no room. */
#pragma once

#include "kernel.h"
#include "shared.h"

struct ring {
	MAP_INT(type, MAP_RINGBUF);
	MAP_INT(max_entries, 4096);
};

/* The loader makes the rings: their size is the user's to choose. */
struct {
	MAP_INT(type, MAP_ARRAY_OF_MAPS);
	MAP_INT(max_entries, MOST_CPUS);
	MAP_INT(key_size, sizeof(u32));
	struct ring *values[];
} rings SEC(".maps");

/* By CPU: events that found no room since the recording began. Behind them: processes that could not be followed. */
u32 lost[MOST_CPUS + 1];
#define UNFOLLOWED MOST_CPUS

/* Nothing is recorded before all programs are there: an end without its beginning, or the other way round, would
 * be the rule. */
volatile u32 is_on SEC(".data.switch") = 0;

struct head {
	/* Nanoseconds of CLOCK_MONOTONIC. */
	u64 time;
	/* What was lost on this CPU before it, in all; wraps. */
	u32 lost;
	/* Id of the event class; see events.tsdl. */
	u16 kind;
	/* A number that some kinds have use for. */
	u16 more;
} PACKED;
_Static_assert(sizeof(struct head) == HEAD_SIZE, "HEAD_SIZE in shared.h");

/* The ring of a CPU; none if the machine has grown since the recording began. */
INLINE void *ring_of(u32 cpu)
{
	return bpf_map_lookup_elem(&rings, &cpu);
}

INLINE void count_loss(u32 cpu)
{
	if (cpu < MOST_CPUS)
		__sync_fetch_and_add(&lost[cpu], 1);
}

INLINE void set_head(struct head *head, u32 cpu, u16 kind, u16 more)
{
	head->time = bpf_ktime_get_ns();
	head->lost = cpu < MOST_CPUS ? lost[cpu] : 0;
	head->kind = kind;
	head->more = more;
}

/* Room for a record of a constant size. */
INLINE void *reserve(u16 kind, u64 size)
{
	u32 cpu = bpf_get_smp_processor_id();
	void *ring = is_on ? ring_of(cpu) : 0;
	struct head *head = ring ? bpf_ringbuf_reserve(ring, size, 0) : 0;

	if (!head) {
		if (is_on)
			count_loss(cpu);
		return 0;
	}
	set_head(head, cpu, kind, 0);
	return head;
}

INLINE void end(void *record)
{
	bpf_ringbuf_submit(record, NO_WAKEUP);
}

/* Sends a record that was made elsewhere, whose size the content decides. */
INLINE void send(struct head *head, u16 kind, u16 more, u64 size)
{
	u32 cpu = bpf_get_smp_processor_id();
	void *ring = ring_of(cpu);

	if (!is_on)
		return;
	set_head(head, cpu, kind, more);
	if (!ring || bpf_ringbuf_output(ring, head, size, NO_WAKEUP))
		count_loss(cpu);
}

/* Begins a record as a variable of that type, or leaves the program. */
#define RESERVE(record, type, kind) \
	struct type *record = reserve(KIND_##kind, sizeof(struct type)); \
	if (!record) \
		return 0
