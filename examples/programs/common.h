/* Options of the programs (name=value), and processes that compete for the CPUs. */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#define _GNU_SOURCE
#define TB_OPTIONAL
#include <tracebraid/probe.h>

#include <mn.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* The value of an option, or a default. */
static inline const char *option_text(char **arguments, const char *name, const char *otherwise)
{
	size_t length = strlen(name);
	for (char **argument = arguments + 1; *argument; argument++)
		if (!strncmp(*argument, name, length) && (*argument)[length] == '=')
			return *argument + length + 1;
	return otherwise;
}

static inline long option(char **arguments, const char *name, long otherwise)
{
	const char *text = option_text(arguments, name, NULL);
	return text ? strtol(text, NULL, 0) : otherwise;
}

/* lwps=N slice=MICROSECONDS queues=shared|stealing */
static inline struct mn_options scheduler_options(char **arguments, long slice_us)
{
	struct mn_options options = { 0 };
	options.lwps = (int)option(arguments, "lwps", 4);
	options.slice_us = (unsigned)option(arguments, "slice", slice_us);
	options.queues = strcmp(option_text(arguments, "queues", "shared"), "stealing") ? MN_SHARED : MN_STEALING;
	return options;
}

static inline uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* CPU time of the process and the kernel's on its behalf: that of other processes does not disturb
 * it. */
static inline uint64_t cpu_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Pseudo-random numbers from a seed (xorshift64*). */
static inline uint64_t next_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}

enum { MOST_HOGS = 64 };

/* hogs=N: processes that take the CPUs from the LWPs, until `stop_hogs`. Before mn_run. */
struct hogs {
	int count;
	pid_t pids[MOST_HOGS];
};

static inline struct hogs start_hogs(char **arguments)
{
	struct hogs hogs = { .count = (int)option(arguments, "hogs", 0) };
	if (hogs.count > MOST_HOGS)
		hogs.count = MOST_HOGS;
	for (int index = 0; index < hogs.count; index++) {
		hogs.pids[index] = fork();
		if (hogs.pids[index] == 0) {
			prctl(PR_SET_NAME, "hog");
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			/* It also leaves the CPU now and then, at times that nothing else follows. */
			for (uint64_t seed = (uint64_t)getpid();;)
				for (volatile uint64_t turns = next_random(&seed) % 5000000; turns; turns--)
					if (turns == 1)
						usleep(next_random(&seed) % 3000);
		}
	}
	return hogs;
}

static inline void stop_hogs(const struct hogs *hogs)
{
	for (int index = 0; index < hogs->count; index++)
		kill(hogs->pids[index], SIGKILL);
}

/* Runs the scheduler on `run(arguments)`, with hogs beside it. */
static inline void run_beside_hogs(void *(*run)(void *), char **arguments, long slice_us)
{
	struct hogs hogs = start_hogs(arguments);
	struct mn_options options = scheduler_options(arguments, slice_us);
	mn_run(&options, run, arguments);
	stop_hogs(&hogs);
}

/* Work that takes time in proportion to `turns`. */
__attribute__((noinline, unused)) static uint64_t compute(uint64_t turns)
{
	TB_PROF_IN();
	uint64_t sum = 0;
	for (uint64_t turn = 0; turn < turns; turn++) {
		sum = sum * 31 + turn;
		__asm__ volatile("" : "+r"(sum));
	}
	TB_PROF_OUT();
	return sum;
}

#endif
