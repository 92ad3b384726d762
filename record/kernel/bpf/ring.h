/* The way out: a ring of memory for each CPU, which the consumer maps, and a count of the
 * records that found no room.
 *
 * A BPF ring buffer takes a lock for each record. Here only the CPU itself writes to its ring,
 * so a record competes with none but those of the programs that interrupt it, and one
 * compare-and-swap of the position takes room.
 *
 * A ring consists of chunks, each an element of one array: an element of more than 4 MiB is
 * refused by older kernels. A record begins below the size of a chunk, at a multiple of eight,
 * and may run on into the slack of its chunk: it always lies in one piece. The next record then
 * begins in the next chunk.
 *
 * A record begins with a word: its bytes without the word (low half), and the bytes up to the
 * next record (high half). Contexts follow it, if any are wanted (contexts.h). The word is zero until the record is complete. The consumer stops at
 * a zero word, and fills all that it has consumed with zeros before it moves `consumed`: free
 * memory is zero, whatever records contained. */
#pragma once

#include "contexts.h"

struct {
	MAP_INT(type, MAP_ARRAY);
	MAP_INT(map_flags, MMAPABLE);
	/* The loader sets both. */
	MAP_INT(max_entries, 1);
	MAP_INT(value_size, RING_SLACK);
	MAP_TYPE(key, u32);
} rings SEC(".maps");

/* The size of rings: constants to the verifier, which derives the bounds of all accesses from
 * them. */
struct ring_shape {
	/* Bytes of a ring, without the slack of its chunks. */
	u64 bytes;
	/* Bytes of a chunk, less one: a power of two. */
	u64 mask;
	/* The logarithm of a chunk's bytes. */
	u32 shift;
	/* Chunks of a ring: a power of two. */
	u32 chunks;
	/* Largest size of a record in bytes. */
	u64 most_record;
};

const volatile struct ring_shape ring_shape SEC(".rodata.ring") = {};

/* By CPU: events that found no room since the recording began. Behind them: processes that could
 * not be followed. */
u32 lost[MOST_CPUS + 1];
#define UNFOLLOWED MOST_CPUS

/* Nothing is recorded before all programs are there: an end without its beginning, or the other
 * way round, would be the rule. */
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

/* Bytes from the beginning of a record to that of the next one. */
INLINE u64 room_of(u64 size)
{
	u64 room = (size + RING_WORD + 7) & ~7ULL;

	/* Without contexts the verifier removes the branch. */
	if (contexts.bytes)
		room += contexts.bytes;
	return room;
}

#define once(place) (*(volatile __typeof__(place) *)&(place))

/* Room in the ring of a CPU. */
struct room {
	u64 begin;
	u64 end;
};

INLINE void count_loss(u32 cpu)
{
	if (cpu < MOST_CPUS)
		__sync_fetch_and_add(&lost[cpu], 1);
}

/* The position after a record of that room: the next chunk, if it reaches the end of this one. */
INLINE u64 position_after(u64 begin, u64 room)
{
	u64 mask = ring_shape.mask;

	return (begin & mask) + room > mask ? (begin | mask) + 1 : begin + room;
}

/* Takes room; gives the record, after its word, or null if there is no room, which is counted. */
INLINE void *take_room(u32 cpu, u64 bytes, struct room *room)
{
	struct cpu *state;

	if (cpu >= MOST_CPUS)
		return 0;
	state = &cpus[cpu];
#pragma clang loop unroll(disable)
	for (int i = 0; i < MOST_TRIES; i++) {
		u64 begin = once(state->written);
		u64 end = position_after(begin, bytes);
		u32 key = cpu * ring_shape.chunks + ((begin >> ring_shape.shift) & (ring_shape.chunks - 1));
		void *chunk = bpf_map_lookup_elem(&rings, &key);

		/* There is no chunk if the machine has grown since the recording began. */
		if (!chunk || end - once(state->consumed) > ring_shape.bytes)
			break;
		if (__sync_val_compare_and_swap(&state->written, begin, end) != begin)
			continue;
		room->begin = begin;
		room->end = end;
		return chunk + (begin & ring_shape.mask) + RING_WORD;
	}
	count_loss(cpu);
	return 0;
}

INLINE void set_head(struct head *head, u32 cpu, u16 kind, u16 more)
{
	head->time = bpf_ktime_get_ns();
	head->lost = cpu < MOST_CPUS ? lost[cpu] : 0;
	head->kind = kind;
	head->more = more;
}

/* Begins the record in the room that was taken: its context and its head. Gives the head. */
INLINE void *begin_record(void *taken, u32 cpu, u16 kind, u16 more)
{
	struct head *head = taken;

	if (contexts.bytes) {
		copy_context(taken);
		head = taken + contexts.bytes;
	}
	set_head(head, cpu, kind, more);
	return head;
}

/* Completes a record of `size` bytes; the next record is `room` bytes after this one. */
INLINE void complete(void *record, u64 size, u64 room)
{
	u64 *word = record - RING_WORD;

	if (contexts.bytes) {
		word = record - contexts.bytes - RING_WORD;
		size += contexts.bytes;
	}
#if defined(__TARGET_ARCH_x86)
	/* Stores of one CPU are seen in their order. */
	asm volatile("" ::: "memory");
	once(*word) = size | room << 32;
#else
	__sync_lock_test_and_set(word, size | room << 32);
#endif
}

/* Room for a record of that size, in bytes, which `complete` is then given too. */
INLINE void *reserve(u32 cpu, u16 kind, u16 more, u64 size)
{
	struct room room;
	void *taken = is_on ? take_room(cpu, room_of(size), &room) : 0;

	return taken ? begin_record(taken, cpu, kind, more) : 0;
}

/* Completes a record of which only the first `size` bytes are used. */
#define end_after(record, size) complete(record, size, room_of(sizeof(*(record))))
#define end(record) end_after(record, sizeof(*(record)))

/* Room for a record whose size is decided while it is written: at most MOST_RECORD bytes, which
 * must all be free. Writes must go from the beginning to the end, and leave zeros after the
 * `size` that `end_large` is then given: the helpers that read memory do, since they fill what
 * they could not read with zeros. The record keeps the rest of the ring from the consumer until
 * it is completed. */
INLINE void *reserve_large(u32 cpu, u16 kind, u16 more, u64 most, struct room *room)
{
	void *taken = is_on ? take_room(cpu, room_of(most), room) : 0;

	return taken ? begin_record(taken, cpu, kind, more) : 0;
}

/* Completes such a record, and gives the rest of its room back, unless records of interrupts
 * follow it already. */
INLINE void end_large(u32 cpu, void *record, u64 most, u64 size, const struct room *room)
{
	u64 end = position_after(room->begin, room_of(size));
	bool is_given = cpu < MOST_CPUS &&
			__sync_val_compare_and_swap(&cpus[cpu].written, room->end, end) == room->end;

	complete(record, size, room_of(is_given ? size : most));
}

/* Sends a record of variable size that was built outside the ring: at most `most_record` bytes with its
 * context. */
INLINE void send(struct head *head, u16 kind, u16 more, u64 size)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct room room;
	void *record;

	if (!is_on)
		return;
	if (size > ring_shape.most_record - MOST_CONTEXT) {
		count_loss(cpu);
		return;
	}
	record = take_room(cpu, room_of(size), &room);
	if (!record)
		return;
	if (contexts.bytes) {
		copy_context(record);
		record += contexts.bytes;
	}
	bpf_probe_read_kernel(record, size, head);
	set_head(record, cpu, kind, more);
	complete(record, size, room_of(size));
}

/* Begins a record as a variable of that type, or leaves the program. */
#define RESERVE(record, type, kind) \
	u32 this_cpu = bpf_get_smp_processor_id(); \
	struct type *record = reserve(this_cpu, KIND_##kind, 0, sizeof(struct type)); \
	if (!record) \
		return 0
