/* Nanoseconds per event: medians of many short rounds, and the cost of the loop and the cycle
 * counter by themselves. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "rounds.h"

enum { ROUNDS = 1000, EVENTS = 5000, WAYS = 4 };

static double rounds[WAYS][ROUNDS];

#define MEASURE(way, round, work) \
	do { \
		double begin = now(); \
		for (int i = 0; i < EVENTS; i++) { \
			work; \
			__asm__ volatile(""); \
		} \
		rounds[way][round] = (now() - begin) / EVENTS; \
	} while (0)

static inline void read_counter(void)
{
#ifdef __x86_64__
	__builtin_ia32_rdtsc();
#endif
}

/* `enabled` and `disabled` are statements that may use `i`. */
#define MEASURE_ALL(enabled, disabled) \
	do { \
		for (int round = 0; round < ROUNDS; round++) { \
			MEASURE(0, round, enabled); \
			MEASURE(1, round, disabled); \
			MEASURE(2, round, ); \
			MEASURE(3, round, read_counter()); \
		} \
		for (int way = 0; way < WAYS; way++) { \
			qsort(rounds[way], ROUNDS, sizeof(double), by_value); \
			printf("%.3f ", rounds[way][ROUNDS / 2]); \
		} \
		puts(""); \
	} while (0)
