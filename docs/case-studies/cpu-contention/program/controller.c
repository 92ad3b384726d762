/* A real-time task that a forgotten thread preempts.
 *
 * The task runs every 10 ms. A library of the program has a housekeeping thread, which runs every
 * 33.3 ms with a higher priority on the same CPU. A thread inherits the name of the thread that
 * creates it, so both have the same name. Each tenth time, the housekeeping is due just after the
 * task has begun.
 *
 *     controller TRUTH [STEPS]
 *
 * writes to the file TRUTH, for each step, its number and whether the housekeeping ran within it.
 * Needs the right to use real-time priorities; without it, `nice` values are used.
 */
#define _GNU_SOURCE
#define TB_OPTIONAL
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tracebraid/probe.h>
#include "../../common/work.h"

TB_EVENT(controller, step_begin, TB_INT32(step));
TB_EVENT(controller, step_end, TB_INT32(step));

#define STEP_NS 10000000L
/* Three in ten steps: 30 Hz. */
#define HOUSEKEEPING_NS (STEP_NS * 10 / 3)
/* Delay of the housekeeping after the begin of each tenth step. */
#define LATER_NS 1000000L

static struct timespec start;
static volatile int done;
/* Number of runs of the housekeeping. */
static volatile int kept;

__attribute__((noinline)) static void compute_step(void)
{
	burn(2.0);
}

__attribute__((noinline)) static void rebuild_index(void)
{
	burn(4.0);
}

__attribute__((noinline)) static void keep_house(void)
{
	kept++;
	rebuild_index();
	kept++;
}

static void *housekeeping(void *unused)
{
	(void)unused;
	go_before(19);
	for (long i = 0; !done; i++) {
		sleep_until(&start, LATER_NS + i * HOUSEKEEPING_NS);
		keep_house();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int steps = argc > 2 ? atoi(argv[2]) : 300;
	FILE *truth = argc > 1 ? fopen(argv[1], "w") : NULL;
	pthread_t other;
	if (!truth || steps < 1) {
		fprintf(stderr, "usage: controller TRUTH [STEPS]\n");
		return 2;
	}
	fprintf(truth, "id,cause\n");
	stay_on_last_cpu();
	go_before(5);
	calibrate();
	clock_gettime(CLOCK_MONOTONIC, &start);
	start.tv_sec++;
	pthread_create(&other, NULL, housekeeping, NULL);
	for (int step = 0; step < steps; step++) {
		sleep_until(&start, step * STEP_NS);
		int before = kept;
		tb_trace(controller, step_begin, step);
		compute_step();
		tb_trace(controller, step_end, step);
		fprintf(truth, "%d,%s\n", step, kept == before ? "none" : "housekeeping");
	}
	done = 1;
	pthread_join(other, NULL);
	return fclose(truth) != 0;
}
