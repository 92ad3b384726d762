/* A pool of workers: the main thread accepts requests and pushes them into a queue, three threads serve them.
 *
 * Each request is a span that begins in the main thread and ends in a worker. A third of them sleep while they are served, a third do so
 * under a lock. At its end the program writes a line for each request, with times of CLOCK_REALTIME in nanoseconds:
 *
 *     id,begin,pushed,taken,end,kind,worker
 *
 * cc -O1 -I record/probe/include -o pool pool.c -lpthread -ldl
 * tracebraid record --kernel sched,irq,timer --syscalls none --no-state-dump --probes '*' -o worker-pool -- sh -c './pool >truth.csv'
 */
#define TB_OPTIONAL
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <tracebraid/probe.h>

enum { REQUESTS = 600, WORKERS = 3 };

static struct request {
	uint64_t id;
	long begin, pushed, taken, end;
	int kind, worker;
} requests[REQUESTS];

static struct request *queue[REQUESTS];
static int head, tail, is_over;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

static long now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_REALTIME, &time);
	return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void spin(long ns)
{
	long end = now() + ns;
	while (now() < end)
		;
}

static void nap(long ns)
{
	struct timespec time = { 0, ns };
	nanosleep(&time, 0);
}

static struct request *take(void)
{
	pthread_mutex_lock(&lock);
	while (head == tail && !is_over)
		pthread_cond_wait(&more, &lock);
	struct request *request = head == tail ? 0 : queue[head++];
	pthread_mutex_unlock(&lock);
	return request;
}

static void *work(void *number)
{
	struct request *request;
	while ((request = take())) {
		request->taken = now();
		request->worker = (int)(long)number;
		spin(100000);
		if (request->kind == 1)
			nap(4000000);
		if (request->kind == 2) {
			pthread_mutex_lock(&table);
			nap(2000000);
			pthread_mutex_unlock(&table);
		}
		spin(50000);
		request->end = now();
		tb_span_end(request->id);
	}
	return 0;
}

int main(void)
{
	pthread_t threads[WORKERS];
	unsigned seed = 7;
	for (long number = 0; number < WORKERS; number++)
		pthread_create(&threads[number], 0, work, (void *)number);
	nap(50000000);
	for (int at = 0; at < REQUESTS; at++) {
		struct request *request = &requests[at];
		nap(rand_r(&seed) % 8 == 0 ? 6000000 : 300000 + rand_r(&seed) % 900000);
		request->id = at + 1;
		request->kind = rand_r(&seed) % 3;
		request->begin = now();
		tb_span_begin(request->id, "request");
		spin(20000);
		pthread_mutex_lock(&lock);
		queue[tail++] = request;
		request->pushed = now();
		pthread_cond_signal(&more);
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	is_over = 1;
	pthread_cond_broadcast(&more);
	pthread_mutex_unlock(&lock);
	for (int number = 0; number < WORKERS; number++)
		pthread_join(threads[number], 0);
	for (int at = 0; at < REQUESTS; at++) {
		struct request *of = &requests[at];
		printf("%lu,%ld,%ld,%ld,%ld,%d,%d\n", (unsigned long)of->id, of->begin, of->pushed, of->taken, of->end, of->kind,
		       of->worker);
	}
}
