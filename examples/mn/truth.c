/* The log is written to the file that the environment variable MN_TRUTH names, when all threads
 * have ended. Each LWP has its own entries, so that logging takes no lock. */
#define _GNU_SOURCE
#include "internal.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCK = 16384 };

struct truth_block {
	struct truth_block *next;
	struct truth_entry entries[BLOCK];
};

static const char *path;

void mn_open_truth(void)
{
	path = getenv("MN_TRUTH");
}

static uint64_t monotonic(uint64_t *time, uint16_t *cpu)
{
	*cpu = (uint16_t)sched_getcpu();
	return *time = mn_now();
}

struct truth_entry *mn_begin_truth(struct lwp *lwp, enum truth_kind kind, uint64_t a, uint64_t b, const char *text)
{
	if (!path)
		return NULL;
	struct truth *truth = &lwp->truth;
	if (truth->count % BLOCK == 0) {
		struct truth_block *block = mmap(NULL, sizeof(*block), PROT_READ | PROT_WRITE,
						 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (block == MAP_FAILED)
			mn_fail("mmap");
		block->next = truth->newest;
		truth->newest = block;
	}
	struct truth_entry *entry = &truth->newest->entries[truth->count++ % BLOCK];
	*entry = (struct truth_entry){ .a = a, .b = b, .text = text, .kind = (uint8_t)kind };
	monotonic(&entry->before, &entry->cpu_before);
	return entry;
}

void mn_end_truth(struct truth_entry *entry)
{
	if (!entry)
		return;
	entry->after = mn_now();
	entry->cpu_after = (uint16_t)sched_getcpu();
}

void mn_sample(uint64_t self)
{
	struct lwp *lwp = mn_lwp();
	/* The kernel's word, not the library's. */
	uint64_t tid = path ? (uint64_t)syscall(SYS_gettid) : 0;
	mn_end_truth(mn_begin_truth(lwp, TRUTH_SAMPLE, self, tid, NULL));
}

static const char *const KINDS[] = { "lwp_begin", "lwp_end", "create", "switch", "block", "wake", "exit", "sample" };

static void write_blocks(FILE *file, const struct lwp *lwp, const struct truth_block *block, uint64_t count)
{
	if (count == 0)
		return;
	uint64_t here = (count - 1) % BLOCK + 1;
	write_blocks(file, lwp, block->next, count - here);
	for (const struct truth_entry *entry = block->entries; entry < block->entries + here; entry++)
		fprintf(file, "%d %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %u %u %s\n", lwp->tid,
			KINDS[entry->kind], entry->a, entry->b, entry->before, entry->after, entry->cpu_before,
			entry->cpu_after, entry->text ? entry->text : "-");
}

void mn_write_truth(void)
{
	if (!path)
		return;
	FILE *file = fopen(path, "w");
	if (!file)
		mn_fail(path);
	fprintf(file, "# lwp kind a b before_ns after_ns cpu_before cpu_after text\n");
	for (int index = 0; index < mn_chosen.lwps; index++)
		write_blocks(file, &mn_lwps[index], mn_lwps[index].truth.newest, mn_lwps[index].truth.count);
	if (fclose(file))
		mn_fail(path);
}
