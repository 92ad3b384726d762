/* Figure 2 of Danjean, Wacrenier, Namyst 2005: more threads than LWPs than CPUs, with time slices.
 * A thread moves between LWPs, and LWPs between CPUs: neither scheduler knows of the other's moves.
 *
 *   affinity threads=20 ms=1000 lwps=4 slice=10000 queues=shared hogs=1
 */
#include "common.h"

static uint64_t until;

static void *work(void *argument)
{
	uint64_t self = mn_self(), sum = 0;
	(void)argument;
	while (now_ns() < until) {
		sum += compute(400000);
		mn_sample(self);
	}
	return (void *)(uintptr_t)sum;
}

static void *run(void *argument)
{
	char **arguments = argument;
	long count = option(arguments, "threads", 20);
	until = now_ns() + (uint64_t)option(arguments, "ms", 1000) * 1000000;
	mn_thread **threads = calloc((size_t)count, sizeof(*threads));
	for (long index = 0; index < count; index++) {
		char name[32];
		snprintf(name, sizeof(name), "work/%ld", index);
		threads[index] = mn_create(name, work, NULL);
	}
	for (long index = 0; index < count; index++)
		mn_join(threads[index]);
	free(threads);
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	run_beside_hogs(run, arguments, 10000);
	return 0;
}
