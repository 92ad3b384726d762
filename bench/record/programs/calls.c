/* calls ROUNDS: nanoseconds of a getppid and of a read of one byte from /dev/zero; medians of the
 * rounds. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rounds.h"

enum { CALLS = 5000, MOST_ROUNDS = 1000, WAYS = 2 };

static double rounds[WAYS][MOST_ROUNDS];

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 20, zero = open("/dev/zero", O_RDONLY);
	if (count < 1 || count > MOST_ROUNDS || zero < 0)
		return 2;
	for (int round = 0; round < count; round++) {
		double begin = now();
		for (int i = 0; i < CALLS; i++)
			syscall(SYS_getppid);
		double middle = now();
		for (int i = 0; i < CALLS; i++) {
			char byte;
			if (read(zero, &byte, 1) != 1)
				return 2;
		}
		rounds[0][round] = (middle - begin) / CALLS;
		rounds[1][round] = (now() - middle) / CALLS;
	}
	for (int way = 0; way < WAYS; way++) {
		qsort(rounds[way], (size_t)count, sizeof(double), by_value);
		printf("%.3f ", rounds[way][count / 2]);
	}
	puts("");
}
