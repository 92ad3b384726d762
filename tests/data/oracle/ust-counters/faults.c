/* Requests in two threads, each of which touches new pages and sleeps, so often as it writes to standard output: the thread, the request's
 * number, pages, sleeps. What one does while the other runs must not count as its own. */
#define _GNU_SOURCE
#include <lttng/tracef.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE 4096
#define MOST 200
#define REQUESTS 100

static void request(long thread, int number)
{
	int pages = (number * 7 + thread * 3) % MOST, sleeps = (number + thread) % 4;
	volatile char *memory = mmap(0, MOST * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)memory, MOST * PAGE, MADV_NOHUGEPAGE);
	tracef("begin %ld/%d", thread, number);
	for (int i = 0; i < pages; i++)
		memory[i * PAGE] = 1;
	for (int i = 0; i < sleeps; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, 0);
	tracef("end %ld/%d", thread, number);
	printf("%ld %d %d %d\n", thread, number, pages, sleeps);
	munmap((void *)memory, MOST * PAGE);
}

static void *requests(void *thread)
{
	for (int i = 0; i < REQUESTS; i++)
		request((long)thread, i);
	return 0;
}

int main(void)
{
	pthread_t threads[2];

	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], 0, requests, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], 0);
}
