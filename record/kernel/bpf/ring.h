/* The transport to user space: a ring of memory for each CPU, which the consumer maps, and a count
 * of the records for which there was no room.
 *
 * A BPF ring buffer takes a lock for each record. Here only the CPU itself writes to its ring, so a
 * record competes only with records of programs that interrupt it, and one compare-and-swap of the
 * position reserves room.
 *
 * A ring consists of chunks, each an element of one array, because older kernels reject elements
 * larger than 4 MiB. A record begins at an offset below the size of a chunk, a multiple of eight,
 * and may extend into the slack of its chunk, so that it is always contiguous. The next record then
 * begins in the next chunk.
 *
 * A record begins with a word: the size of the record in bytes without the word (low half), and the
 * distance to the next record (high half). Contexts follow the word, if any are requested
 * (contexts.h). The word is zero until the record is complete. The consumer stops at a zero word,
 * and fills all consumed memory with zeros before it moves `consumed`: free memory is zero,
 * whatever records contained. */
#pragma once

#include "contexts.h"

struct {
	MAP_INT(type, MAP_ARRAY);
	MAP_INT(map_flags, MMAPABLE);
	/* Both are set by the loader. */
	MAP_INT(max_entries, 1);
	MAP_INT(value_size, RING_SLACK);
	MAP_TYPE(key, u32);
} rings SEC(".maps");

/* The size of rings: constants to the verifier, which derives the bounds of all accesses from
 * them. */
struct ring_shape {
	/* Bytes of a ring, without the slack of its chunks. */
	u64 bytes;
	/* Size of a chunk in bytes, minus one; the size is a power of two. */
	u64 mask;
	/* Binary logarithm of the size of a chunk. */
	u32 shift;
	/* Chunks of a ring: a power of two. */
	u32 chunks;
	/* Largest size of a record in bytes. */
	u64 most_record;
};

const volatile struct ring_shape ring_shape SEC(".rodata.ring") = {};

/* By CPU: events without room since the recording began. The last element counts processes that
 * could not be followed. */
u32 lost[MOST_CPUS + 1];
#define UNFOLLOWED MOST_CPUS

/* Zero until all programs are attached, since otherwise many ends would be recorded without their
 * beginnings, and vice versa. */
volatile u32 is_on SEC(".data.switch") = 0;

struct head {
	/* Nanoseconds of CLOCK_MONOTONIC. */
	u64 time;
	/* Cumulative count of lost events on this CPU up to this record; wraps. */
	u32 lost;
	/* Id of the event class; see events.tsdl. */
	u16 kind;
	/* Additional value whose meaning depends on the kind. */
	u16 more;
} PACKED;
_Static_assert(sizeof(struct head) == HEAD_SIZE, "HEAD_SIZE in shared.h");

/* Bytes from the beginning of a record to the beginning of the next. */
INLINE u64 room_of(u64 size)
{
	u64 room = (size + RING_WORD + 7) & ~7ULL;

	/* If there are no contexts, the verifier removes the branch. */
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

/* The position after a record that takes `room` bytes: the next chunk if the record reaches the end
 * of its chunk. */
INLINE u64 position_after(u64 begin, u64 room)
{
	u64 mask = ring_shape.mask;

	return (begin & mask) + room > mask ? (begin | mask) + 1 : begin + room;
}

/* Reserves room. Returns the address after the record's word, or null if there is no room, which is
 * counted. */
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

		/* The chunk is missing if CPUs were added since the recording began. */
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

/* Writes the context and the head of a record to reserved room. Returns the head. */
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
	/* x86 makes the stores of one CPU visible in their order. */
	asm volatile("" ::: "memory");
	once(*word) = size | room << 32;
#else
	__sync_lock_test_and_set(word, size | room << 32);
#endif
}

/* Reserves a record of `size` bytes, to be passed to `complete`, too. */
INLINE void *reserve(u32 cpu, u16 kind, u16 more, u64 size)
{
	struct room room;
	void *taken = is_on ? take_room(cpu, room_of(size), &room) : 0;

	return taken ? begin_record(taken, cpu, kind, more) : 0;
}

/* Completes a record of which only the first `size` bytes are used. */
#define end_after(record, size) complete(record, size, room_of(sizeof(*(record))))
#define end(record) end_after(record, sizeof(*(record)))

/* Reserves a record whose size is not known yet: `most` bytes, at most MOST_RECORD, which must all
 * be free. Writes must proceed from the beginning to the end and leave zeros after the `size`
 * passed to `end_large`; the helpers that read memory do that, since they fill unreadable parts
 * with zeros. Until the record is completed, the consumer cannot read the records after it. */
INLINE void *reserve_large(u32 cpu, u16 kind, u16 more, u64 most, struct room *room)
{
	void *taken = is_on ? take_room(cpu, room_of(most), room) : 0;

	return taken ? begin_record(taken, cpu, kind, more) : 0;
}

/* Completes such a record, and releases the rest of its room unless records of interrupts follow it
 * already. */
INLINE void end_large(u32 cpu, void *record, u64 most, u64 size, const struct room *room)
{
	u64 end = position_after(room->begin, room_of(size));
	bool is_given = cpu < MOST_CPUS &&
			__sync_val_compare_and_swap(&cpus[cpu].written, room->end, end) == room->end;

	complete(record, size, room_of(is_given ? size : most));
}

/* Sends a record of variable size that was built outside the ring: at most `most_record` bytes
 * including its context. */
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

/* Reserves a record as a variable of the given type; returns from the program if there is no
 * room. */
#define RESERVE(record, type, kind) \
	u32 this_cpu = bpf_get_smp_processor_id(); \
	struct type *record = reserve(this_cpu, KIND_##kind, 0, sizeof(struct type)); \
	if (!record) \
		return 0
