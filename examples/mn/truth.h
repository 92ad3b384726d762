/* Ground truth: which user-level thread ran where, as the library itself saw it. */
#ifndef MN_TRUTH_H
#define MN_TRUTH_H

#include <stdint.h>

enum truth_kind {
	TRUTH_LWP_BEGIN, TRUTH_LWP_END, TRUTH_CREATE, TRUTH_SWITCH, TRUTH_BLOCK, TRUTH_WAKE, TRUTH_EXIT, TRUTH_SAMPLE,
};

struct truth_entry {
	uint64_t before, after;	/* the probe was called between these times of CLOCK_MONOTONIC */
	uint64_t a, b;
	const char *text;
	uint16_t cpu_before, cpu_after;
	uint8_t kind;
};

/* The entries of an LWP. */
struct truth {
	struct truth_block *newest;
	uint64_t count;
};

struct lwp;

/* Begins and ends an entry; `entry` is NULL if no truth was asked for. */
struct truth_entry *mn_begin_truth(struct lwp *lwp, enum truth_kind kind, uint64_t a, uint64_t b, const char *text);
void mn_end_truth(struct truth_entry *entry);
void mn_open_truth(void);
void mn_write_truth(void);

/* Records an event by a probe, and logs it. */
#define MN_RECORD(lwp, kind, a, b, text, probe) \
	do { \
		struct truth_entry *entry_ = mn_begin_truth(lwp, kind, a, b, text); \
		probe; \
		mn_end_truth(entry_); \
	} while (0)

#endif
