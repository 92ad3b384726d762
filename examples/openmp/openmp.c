/* OpenMP programs that log what ran where: the ground truth for recordings of OpenMP.
 *
 *     clang -fopenmp -O1 openmp.c -o openmp
 *     ./openmp fib 12 > fib.log
 *
 * Programs: fib N, tree DEPTH WIDTH, groups COUNT, wavefront SIZE, loops COUNT, critical COUNT, locks COUNT,
 * ordered COUNT, nested COUNT, detached COUNT, cancelled COUNT, all; steps COUNT, which is not part of
 * all.
 *
 * A line of output is a segment: `TASK TID BEGIN END`, code of the program between two calls of the
 * runtime, with times of CLOCK_MONOTONIC in nanoseconds. Each task, explicit or implicit, has a number of
 * its own. `holds TASK TID BEGIN END` is a segment in a critical section or with a lock.
 */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct segment {
	uint64_t task, begin, end;
	int holds;
};

/* Segments of one thread, in a list of all threads. */
struct log {
	struct log *next;
	int tid;
	size_t count, room;
	struct segment *segments;
};

static struct log *logs;
static pthread_mutex_t logs_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct log *own;

static uint64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void new_log(void)
{
	own = calloc(1, sizeof *own);
	own->tid = gettid();
	own->room = 1 << 16;
	own->segments = malloc(own->room * sizeof *own->segments);
	pthread_mutex_lock(&logs_lock);
	own->next = logs;
	logs = own;
	pthread_mutex_unlock(&logs_lock);
}

static uint64_t new_task(void)
{
	static uint64_t last;
	return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

/* Logs a segment that began at `begin` on this thread. */
static void segment(uint64_t task, uint64_t begin, int holds)
{
	if (!own)
		new_log();
	if (own->count == own->room) {
		own->room *= 2;
		own->segments = realloc(own->segments, own->room * sizeof *own->segments);
	}
	own->segments[own->count++] = (struct segment){ task, begin, now(), holds };
}

/* Computes for `us` microseconds, as one segment. */
static void compute(uint64_t task, unsigned us)
{
	uint64_t begin = now();
	while (now() - begin < us * 1000)
		;
	segment(task, begin, 0);
}

static long fib(uint64_t self, int n)
{
	long left, right;
	uint64_t begin = now();
	if (n < 2) {
		segment(self, begin, 0);
		return n;
	}
	uint64_t child = new_task();
	segment(self, begin, 0);
#pragma omp task shared(left) firstprivate(child, n)
	left = fib(child, n - 1);
	right = fib(self, n - 2);
#pragma omp taskwait
	compute(self, 1);
	return left + right;
}

static void tree(uint64_t self, int depth, int width)
{
	compute(self, 20);
	for (int i = 0; depth > 0 && i < width; i++) {
		uint64_t child = new_task();
#pragma omp task firstprivate(child, depth, width) untied
		tree(child, depth - 1, width);
	}
	/* Parents end earlier than their children on every second level. */
	if (depth % 2) {
#pragma omp taskwait
		compute(self, 5);
	}
}

static void groups(uint64_t self, int count)
{
	for (int i = 0; i < count; i++) {
#pragma omp taskgroup
		{
			for (int k = 0; k < 4; k++) {
				uint64_t child = new_task();
#pragma omp task firstprivate(child, k)
				{
					uint64_t grandchild = new_task();
#pragma omp task firstprivate(grandchild, k)
					compute(grandchild, 30 * k);
					compute(child, 10);
				}
			}
		}
		compute(self, 5);
		uint64_t child = new_task();
#pragma omp task if(0) firstprivate(child)
		compute(child, 10);
#pragma omp taskyield
		compute(self, 1);
	}
}

static void wavefront(int size)
{
	char *cell = calloc((size_t)(size + 1) * (size + 1), 1);
#define CELL(i, k) cell[(i) * (size + 1) + (k)]
	for (int i = 1; i <= size; i++)
		for (int k = 1; k <= size; k++) {
			uint64_t child = new_task();
#pragma omp task firstprivate(child, i, k) depend(in : CELL(i - 1, k), CELL(i, k - 1)) depend(out : CELL(i, k))
			compute(child, 10 + (i * k) % 20);
		}
#pragma omp taskwait depend(in : CELL(size, size))
	free(cell);
}

static void loops(uint64_t self, int count)
{
	static long sum;
#pragma omp for schedule(static)
	for (int i = 0; i < count; i++)
		compute(self, i);
#pragma omp for schedule(dynamic, 2) reduction(+ : sum)
	for (int i = 0; i < count; i++) {
		compute(self, count - i);
		sum += i;
	}
#pragma omp sections
	{
#pragma omp section
		compute(self, 100);
#pragma omp section
		compute(self, 10);
	}
#pragma omp barrier
	compute(self, 1);
}

static void critical(uint64_t self, int count)
{
	for (int i = 0; i < count; i++) {
#pragma omp critical
		{
			uint64_t begin = now();
			usleep(100);
			segment(self, begin, 1);
		}
		compute(self, 5);
	}
}

static omp_lock_t lock;
static omp_nest_lock_t nested_lock;

static void locks(uint64_t self, int count)
{
	for (int i = 0; i < count; i++) {
		omp_set_lock(&lock);
		uint64_t begin = now();
		usleep(100);
		segment(self, begin, 1);
		omp_unset_lock(&lock);
		if (omp_test_lock(&lock))
			omp_unset_lock(&lock);
		omp_set_nest_lock(&nested_lock);
		omp_set_nest_lock(&nested_lock);
		compute(self, 3);
		omp_unset_nest_lock(&nested_lock);
		omp_unset_nest_lock(&nested_lock);
	}
}

static void ordered(uint64_t self, int count)
{
#pragma omp for ordered schedule(static, 1)
	for (int i = 0; i < count; i++) {
		compute(self, 10);
#pragma omp ordered
		compute(self, 10);
	}
}

static void nested(uint64_t self, int count)
{
	for (int i = 0; i < count; i++) {
		compute(self, 10);
#pragma omp parallel num_threads(2)
		{
			uint64_t inner = new_task();
			compute(inner, 20 + 20 * omp_get_thread_num());
#pragma omp single nowait
			{
				uint64_t child = new_task();
#pragma omp task firstprivate(child)
				compute(child, 10);
			}
		}
		compute(self, 10);
	}
}

/* Tasks that end when another thread fulfils their event. */
static omp_event_handle_t *events;

static void *fulfil(void *count)
{
	for (long i = 0; i < (long)count; i++) {
		omp_event_handle_t *event = &events[i];
		while (!__atomic_load_n((uintptr_t *)event, __ATOMIC_ACQUIRE))
			usleep(50);
		usleep(100);
		omp_fulfill_event(*event);
	}
	return NULL;
}

static void detached(uint64_t self, int count)
{
	pthread_t thread;
	events = calloc((size_t)count, sizeof *events);
	pthread_create(&thread, NULL, fulfil, (void *)(long)count);
	for (int i = 0; i < count; i++) {
		uint64_t child = new_task();
		omp_event_handle_t event;
#pragma omp task firstprivate(child, i) detach(event)
		{
			compute(child, 20);
			__atomic_store_n((uintptr_t *)&events[i], (uintptr_t)event, __ATOMIC_RELEASE);
		}
	}
#pragma omp taskwait
	compute(self, 1);
	pthread_join(thread, NULL);
	free(events);
}

/* Needs OMP_CANCELLATION=true. */
static void cancelled(uint64_t self, int count)
{
#pragma omp taskgroup
	for (int i = 0; i < count; i++) {
		uint64_t child = new_task();
#pragma omp task firstprivate(child, i)
		{
			compute(child, 10);
			if (i == count / 2) {
#pragma omp cancel taskgroup
			}
		}
	}
	compute(self, 1);
}

/* One parallel region with some tasks; repeated, it is the step of a simulation. */
static void step(int width)
{
#pragma omp parallel
	{
		uint64_t self = new_task();
		compute(self, 20);
#pragma omp single
		for (int i = 0; i < width; i++) {
			uint64_t child = new_task();
#pragma omp task firstprivate(child)
			compute(child, 200);
		}
	}
}

static void steps(int count, int width)
{
	uint64_t initial = new_task();
	for (int i = 0; i < count; i++) {
		compute(initial, 500);
		step(width);
	}
}

static int is(const char *program, const char *name)
{
	return !strcmp(program, name) || !strcmp(program, "all");
}

static void run(const char *program, int count, int width)
{
	uint64_t initial = new_task();
	compute(initial, 100);
#pragma omp parallel
	{
		uint64_t self = new_task();
		compute(self, 20);
#pragma omp single
		{
			if (is(program, "fib"))
				fib(self, count);
			if (is(program, "tree"))
				tree(self, count < 6 ? count : 6, width);
			if (is(program, "groups"))
				groups(self, count);
			if (is(program, "wavefront"))
				wavefront(count);
			if (is(program, "detached"))
				detached(self, count);
			if (is(program, "cancelled"))
				cancelled(self, count);
		}
		if (is(program, "loops"))
			loops(self, count);
		if (is(program, "critical"))
			critical(self, count);
		if (is(program, "locks"))
			locks(self, count);
		if (is(program, "ordered"))
			ordered(self, count);
		if (is(program, "nested"))
			nested(self, count);
	}
	compute(initial, 10);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: openmp PROGRAM COUNT [WIDTH]\n");
		return 2;
	}
	omp_init_lock(&lock);
	omp_init_nest_lock(&nested_lock);
	omp_set_max_active_levels(2);
	if (!strcmp(argv[1], "steps"))
		steps(atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 8);
	else
		run(argv[1], atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 3);
	for (struct log *log = logs; log; log = log->next)
		for (size_t i = 0; i < log->count; i++) {
			struct segment *of = &log->segments[i];
			printf("%s%lu %d %lu %lu\n", of->holds ? "holds " : "", of->task, log->tid, of->begin, of->end);
		}
	return 0;
}
