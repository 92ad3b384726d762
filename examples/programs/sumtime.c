/* Torture test of thread libraries (Danjean, Wacrenier, Namyst 2005, section 3.3): builds a complete
 * binary tree of threads recursively, each of which joins its children and adds their sums.
 *
 *   sumtime height=12 rounds=1 lwps=4 slice=0 queues=shared
 */
#include "common.h"

#include <inttypes.h>

static void *node(void *argument)
{
	TB_PROF_IN();
	uintptr_t height = (uintptr_t)argument, sum = 1;
	if (height > 0) {
		mn_thread *left = mn_create("left", node, (void *)(height - 1));
		mn_thread *right = mn_create("right", node, (void *)(height - 1));
		sum += (uintptr_t)mn_join(left);
		sum += (uintptr_t)mn_join(right);
	}
	TB_PROF_OUT();
	return (void *)sum;
}

struct run {
	uintptr_t height;
	long rounds;
	uint64_t elapsed, cpu;
};

static void *run(void *argument)
{
	struct run *run = argument;
	uint64_t begin = now_ns(), cpu_begin = cpu_ns();
	for (long round = 0; round < run->rounds; round++) {
		uintptr_t sum = (uintptr_t)mn_join(mn_create("root", node, (void *)run->height));
		if (sum != ((uintptr_t)2 << run->height) - 1) {
			fprintf(stderr, "sumtime: wrong sum %" PRIuPTR "\n", sum);
			exit(1);
		}
	}
	run->elapsed = now_ns() - begin;
	run->cpu = cpu_ns() - cpu_begin;
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	struct mn_options options = scheduler_options(arguments, 0);
	struct run given = { (uintptr_t)option(arguments, "height", 12), option(arguments, "rounds", 1), 0, 0 };
	mn_run(&options, run, &given);
	printf("%ld threads, %.6f s, CPU %.6f s\n", (long)((2ul << given.height) - 1) * given.rounds,
	       (double)given.elapsed / 1e9, (double)given.cpu / 1e9);
	return 0;
}
