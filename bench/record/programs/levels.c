/* Nanoseconds of a probe, of a system call, and of buffered output (Table 1 of Danjean, Wacrenier,
 * Namyst 2005): medians of many short rounds. Names and figures, a line each. */
#define _GNU_SOURCE
#define TB_OPTIONAL
#include <tracebraid/probe.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rounds.h"

enum { ROUNDS = 1000, CALLS = 1000, WAYS = 6 };

static double rounds[WAYS][ROUNDS];

#define MEASURE(way, round, work) \
	do { \
		double begin = now(); \
		for (int i = 0; i < CALLS; i++) { \
			work; \
			__asm__ volatile(""); \
		} \
		rounds[way][round] = (now() - begin) / CALLS; \
	} while (0)

int main(void)
{
	static const char *const NAMES[WAYS] = { "PROF_IN", "ult_switch", "ult_block", "getpid", "printf", "counter" };
	/* Output that is never written. */
	FILE *file = fopen("/dev/null", "w");
	static char buffer[1 << 16];
	setvbuf(file, buffer, _IOFBF, sizeof(buffer));
	for (int round = 0; round < ROUNDS; round++) {
		MEASURE(0, round, TB_PROF_IN());
		MEASURE(1, round, tb_ult_switch((uint64_t)i, (uint64_t)i + 1));
		MEASURE(2, round, tb_ult_block((uint64_t)i, "mutex"));
		MEASURE(3, round, syscall(SYS_getpid));
		MEASURE(4, round, fprintf(file, "test"));
#ifdef __x86_64__
		MEASURE(5, round, __builtin_ia32_rdtsc());
#endif
	}
	for (int way = 0; way < WAYS; way++) {
		qsort(rounds[way], ROUNDS, sizeof(double), by_value);
		printf("%s %.2f\n", NAMES[way], rounds[way][ROUNDS / 2]);
	}
	return 0;
}
