/* Frames of Python functions. From 3.11 on the interpreter calls most functions without a frame on
 * the C stack, so their frames are read from its memory. The recorder finds the interpreter of a
 * process (a symbol of its file) and the offsets of the fields
 * (`record/kernel/src/stacks/python.rs`). */
#pragma once

#include "ring.h"
#include "sched.h"

#define MOST_PYTHON_THREADS 256
#define MOST_INTERPRETERS 8

/* An interpreter in a process: the address of the list of interpreters, and offsets in its
 * types. */
struct python {
	u64 interpreters;
	u16 interpreter_next;
	u16 interpreter_threads;
	u16 thread_next;
	u16 thread_id;
	/* Offset of `cframe`; if the version has no `cframe`, of `current_frame`. */
	u16 thread_frame;
	/* Offset in `cframe`; 0xffff if the version has no `cframe`. */
	u16 cframe_frame;
	u16 frame_previous;
	u16 frame_code;
	u16 frame_owner;
	/* 0xffff if frames of the C stack contain this information. */
	u16 frame_is_entry;
	u16 code_file;
	u16 code_name;
	u16 code_line;
	u16 text_length;
	u16 text_state;
	/* Offsets of the characters in ASCII strings, and in other strings. */
	u16 text_ascii;
	u16 text_other;
	u16 padding[3];
};
_Static_assert(sizeof(struct python) == PYTHON_SIZE, "PYTHON_SIZE in shared.h");

#define NO_FIELD 0xffff

/* By process id. */
struct {
	MAP_INT(type, MAP_HASH);
	MAP_INT(max_entries, 16384);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, struct python);
} pythons SEC(".maps");

/* By thread: the address of the interpreter's state of the thread. */
struct {
	MAP_INT(type, MAP_TASK_STORAGE);
	MAP_INT(map_flags, NO_PREALLOC);
	MAP_TYPE(key, int);
	MAP_TYPE(value, u64);
} python_threads SEC(".maps");

struct python_code {
	u32 process;
	u32 padding;
	u64 code;
};

/* The most recently recorded function by address of its code object, since addresses are reused. */
struct {
	MAP_INT(type, MAP_LRU_HASH);
	MAP_INT(max_entries, 65536);
	MAP_TYPE(key, struct python_code);
	MAP_TYPE(value, u64);
} python_names SEC(".maps");

/* A function: its name and file as strings of the interpreter with `width` bytes per character. */
struct python_function {
	struct head head;
	s32 pid;
	s32 line;
	u64 code;
	u32 name_bytes;
	u32 name_width;
	u32 file_bytes;
	u32 file_width;
	u8 name[PYTHON_TEXT];
	u8 file[PYTHON_TEXT];
} PACKED;

INLINE u64 read_word(u64 address)
{
	u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)address);
	return word;
}

#define TEXT_KIND(state) (((state) >> 2) & 7)
#define TEXT_IS_COMPACT (1 << 5)
#define TEXT_IS_ASCII (1 << 6)

/* Copies a string of the interpreter; returns its length in bytes. */
INLINE u32 copy_text(u8 *to, u64 text, const struct python *python, u32 *width)
{
	u64 bytes = read_word(text + python->text_length);
	u32 state = read_word(text + python->text_state);
	u64 from = text + (state & TEXT_IS_ASCII ? python->text_ascii : python->text_other);

	*width = TEXT_KIND(state);
	bytes *= *width;
	if (!(state & TEXT_IS_COMPACT) || !text)
		return 0;
	if (bytes > PYTHON_TEXT)
		bytes = PYTHON_TEXT;
	return bpf_probe_read_user(to, bytes, (void *)from) ? 0 : bytes;
}

/* Records the name of a function unless that has been done. */
__attribute__((noinline)) static int name_function(u64 code, const struct python *python)
{
	struct python_code key = { .process = bpf_get_current_pid_tgid() >> 32, .code = code };
	struct python_function *record;
	u64 *known, name;

	if (!python)
		return 0;
	name = read_word(code + python->code_name);
	known = bpf_map_lookup_elem(&python_names, &key);
	if (known && *known == name)
		return 0;
	record = reserve(bpf_get_smp_processor_id(), KIND_python_function, 0, sizeof(*record));
	if (!record)
		return 0;
	record->pid = key.process;
	record->line = read_word(code + python->code_line);
	record->code = code;
	record->name_bytes = copy_text(record->name, name, python, &record->name_width);
	record->file_bytes = copy_text(record->file, read_word(code + python->code_file), python, &record->file_width);
	end(record);
	bpf_map_update_elem(&python_names, &key, &name, BPF_ANY);
	return 0;
}

/* A search for the interpreter's state of a thread. */
struct thread_search {
	const struct python *python;
	u64 number;
	/* The candidate to examine; at the end the result, or 0. */
	u64 thread;
};

static long look_at_thread(u32 index, struct thread_search *search)
{
	u64 thread = search->thread;

	if (!thread || read_word(thread + search->python->thread_id) == search->number)
		return 1;
	search->thread = read_word(thread + search->python->thread_next);
	return 0;
}

/* The interpreter's state of the running thread, found by the thread's identifier in the C library.
 * 0 if the interpreter does not know the thread. */
INLINE u64 python_thread(struct task_struct *task, const struct python *python)
{
	u64 *known = bpf_task_storage_get(&python_threads, task, 0, STORAGE_CREATE);
	u64 interpreter = read_word(python->interpreters);
	struct thread_search search = { .python = python, .number = task->thread.fsbase };

	if (known && *known && read_word(*known + python->thread_id) == search.number)
		return *known;
	for (int i = 0; i < MOST_INTERPRETERS && interpreter; i++) {
		search.thread = read_word(interpreter + python->interpreter_threads);
		bpf_loop(MOST_PYTHON_THREADS, look_at_thread, &search, 0);
		if (search.thread) {
			if (known)
				*known = search.thread;
			return search.thread;
		}
		interpreter = read_word(interpreter + python->interpreter_next);
	}
	return 0;
}

/* Owner of entry frames, which represent a call of the interpreter by C (from 3.12 on). */
#define OWNED_BY_C_STACK 3

struct frames_walk {
	const struct python *python;
	u64 *to;
	/* In a map, since the verifier would track each value of a counter on its own stack. */
	u64 *count;
	u64 frame;
};

static long look_at_frame(u32 index, struct frames_walk *walk)
{
	const struct python *python = walk->python;
	u64 frame = walk->frame, code, is_entry = 0;
	u64 count = *walk->count;
	u8 owner;

	if (!frame || count >= MOST_PYTHON_FRAMES)
		return 1;
	code = read_word(frame + python->frame_code);
	owner = read_word(frame + python->frame_owner);
	walk->frame = read_word(frame + python->frame_previous);
	if (python->frame_is_entry != NO_FIELD) {
		is_entry = read_word(frame + python->frame_is_entry) & 0xff ? 1 : 0;
	} else if (owner == OWNED_BY_C_STACK) {
		if (count > 0 && count <= MOST_PYTHON_FRAMES)
			walk->to[count - 1] |= 1;
		return 0;
	}
	name_function(code, python);
	walk->to[count] = (code & ~1ULL) | is_entry;
	*walk->count = count + 1;
	return 0;
}

/* Writes the code object of each function of the running thread, innermost first, and counts them.
 * The lowest bit is set on functions at which C called the interpreter. */
INLINE void follow_python(u64 *to, u64 *count, struct task_struct *task, const struct python *python)
{
	struct frames_walk walk = { .python = python, .to = to, .count = count };
	u64 thread = python_thread(task, python);

	if (!thread)
		return;
	walk.frame = read_word(thread + python->thread_frame);
	if (python->cframe_frame != NO_FIELD && walk.frame)
		walk.frame = read_word(walk.frame + python->cframe_frame);
	bpf_loop(MOST_PYTHON_FRAMES + 1, look_at_frame, &walk, 0);
}
