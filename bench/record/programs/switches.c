/* switches ROUNDS: nanoseconds of a round trip of a byte between two processes over pipes, and of a
 * fork and the wait for its exit; medians of the rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rounds.h"

enum { TRIPS = 2000, FORKS = 50, MOST_ROUNDS = 1000, WAYS = 2 };

static double rounds[WAYS][MOST_ROUNDS];

static void answer(int from, int to)
{
	char byte;

	while (read(from, &byte, 1) == 1 && write(to, &byte, 1) == 1)
		;
	_exit(0);
}

static void round_trip(int to, int from)
{
	char byte = 0;

	if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
		exit(2);
}

static void fork_and_wait(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	if (child < 0 || waitpid(child, NULL, 0) != child)
		exit(2);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 20, there[2], back[2];

	if (count < 1 || count > MOST_ROUNDS || pipe(there) || pipe(back))
		return 2;
	pid_t child = fork();
	if (child < 0)
		return 2;
	if (child == 0) {
		close(there[1]);
		answer(there[0], back[1]);
	}
	close(there[0]);
	for (int round = 0; round < count; round++) {
		double begin = now();
		for (int i = 0; i < TRIPS; i++)
			round_trip(there[1], back[0]);
		double middle = now();
		for (int i = 0; i < FORKS; i++)
			fork_and_wait();
		rounds[0][round] = (middle - begin) / TRIPS;
		rounds[1][round] = (now() - middle) / FORKS;
	}
	close(there[1]);
	waitpid(child, NULL, 0);
	for (int way = 0; way < WAYS; way++) {
		qsort(rounds[way], (size_t)count, sizeof(double), by_value);
		printf("%.3f ", rounds[way][count / 2]);
	}
	puts("");
}
