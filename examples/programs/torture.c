/* A random mix of all that user-level threads do, for comparing recordings with the ground truth
 * (MN_TRUTH): computing, yielding, sleeping, mutexes, conditions, pipes, and threads that create
 * and join others.
 *
 *   torture threads=1000 steps=20 seed=1 lwps=4 slice=2000 queues=shared hogs=1
 */
#include "common.h"

#include <fcntl.h>
#include <sys/epoll.h>

enum { MUTEXES = 8, PIPES = 4 };

static mn_mutex mutexes[MUTEXES];
static long guarded[MUTEXES];
/* Barriers of two: the first that arrives waits for the second. */
static struct pair {
	mn_mutex mutex;
	mn_condition condition;
	uint64_t arrivals;
} pairs[MUTEXES];
static struct channel {
	mn_mutex reader;
	int ends[2];
} channels[PIPES];
static long steps;
static long running;

static void use_mutex(uint64_t *seed)
{
	unsigned which = next_random(seed) % MUTEXES;
	mn_lock(&mutexes[which]);
	long seen = guarded[which];
	compute(next_random(seed) % 20000);
	if (next_random(seed) % 4 == 0)
		mn_yield();
	if (guarded[which] != seen) {
		fprintf(stderr, "torture: a mutex has two owners\n");
		exit(1);
	}
	guarded[which] = seen + 1;
	mn_unlock(&mutexes[which]);
}

/* Waits for a partner, but not for one that may never come. */
static void use_condition(uint64_t *seed)
{
	struct pair *pair = &pairs[next_random(seed) % MUTEXES];
	mn_lock(&pair->mutex);
	uint64_t arrival = ++pair->arrivals;
	if (arrival % 2 == 0)
		mn_broadcast(&pair->condition);
	else
		while (pair->arrivals == arrival && __atomic_load_n(&running, __ATOMIC_RELAXED) > 1)
			mn_wait(&pair->condition, &pair->mutex);
	mn_unlock(&pair->mutex);
}

static void use_channel(uint64_t *seed)
{
	struct channel *channel = &channels[next_random(seed) % PIPES];
	char byte = 1;
	mn_lock(&channel->reader);
	if (write(channel->ends[1], &byte, 1) != 1)
		perror("write");
	if (next_random(seed) % 2)
		mn_sleep(next_random(seed) % 300000);
	mn_wait_fd(channel->ends[0], EPOLLIN);
	if (read(channel->ends[0], &byte, 1) != 1)
		perror("read");
	mn_unlock(&channel->reader);
}

static void *child(void *argument)
{
	uint64_t seed = (uintptr_t)argument, self = mn_self();
	for (int step = 0; step < 3; step++) {
		compute(next_random(&seed) % 50000);
		mn_sample(self);
		mn_yield();
	}
	return argument;
}

static void use_children(uint64_t *seed)
{
	mn_thread *children[4];
	unsigned count = 1 + next_random(seed) % 4;
	for (unsigned index = 0; index < count; index++)
		children[index] = mn_create("child", child, (void *)(uintptr_t)(next_random(seed) | 1));
	for (unsigned index = 0; index < count; index++)
		mn_join(children[index]);
}

/* Those that wait for a partner are released by those that end. */
static void release_pairs(void)
{
	__atomic_sub_fetch(&running, 1, __ATOMIC_RELAXED);
	for (int index = 0; index < MUTEXES; index++) {
		mn_lock(&pairs[index].mutex);
		if (pairs[index].arrivals % 2)
			pairs[index].arrivals++;
		mn_broadcast(&pairs[index].condition);
		mn_unlock(&pairs[index].mutex);
	}
}

static void *work(void *argument)
{
	uint64_t seed = (uintptr_t)argument, self = mn_self();
	for (long step = 0; step < steps; step++) {
		mn_sample(self);
		switch (next_random(&seed) % 12) {
		case 0: mn_sleep(next_random(&seed) % 2000000); break;
		case 1: use_condition(&seed); break;
		case 2: use_channel(&seed); break;
		case 3: use_children(&seed); break;
		case 4: case 5: use_mutex(&seed); break;
		case 6: case 7: mn_yield(); break;
		case 8: compute(next_random(&seed) % 1000000); break;
		default: compute(next_random(&seed) % 50000); break;
		}
		mn_sample(self);
	}
	release_pairs();
	return NULL;
}

static void *run(void *argument)
{
	char **arguments = argument;
	long count = option(arguments, "threads", 1000);
	uint64_t seed = (uint64_t)option(arguments, "seed", 1) | 1;
	steps = option(arguments, "steps", 20);
	running = count;
	for (int index = 0; index < PIPES; index++)
		if (pipe2(channels[index].ends, O_NONBLOCK)) {
			perror("pipe2");
			exit(1);
		}
	mn_thread **threads = calloc((size_t)count, sizeof(*threads));
	for (long index = 0; index < count; index++) {
		char name[32];
		snprintf(name, sizeof(name), "work/%ld", index);
		threads[index] = mn_create(name, work, (void *)(uintptr_t)(next_random(&seed) | 1));
		if (index % 16 == 0)
			mn_yield();
	}
	for (long index = 0; index < count; index++)
		mn_join(threads[index]);
	free(threads);
	return NULL;
}

int main(int count, char **arguments)
{
	(void)count;
	run_beside_hogs(run, arguments, 2000);
	return 0;
}
