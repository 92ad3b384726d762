// Opens pipes by io_uring, which waits in worker threads until another thread opens their other ends.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TIMES 5
#define FIRST 1000

static void fail(const char *what)
{
	perror(what);
	// The test takes that for a machine that refuses io_uring.
	exit(77);
}

/* Uses CPU time. The clock is read by a recorded system call: without computing between two reads, a busy machine loses
 * events. */
static void spin(long milliseconds)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do {
		for (volatile int step = 0; step < 100000; step++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < milliseconds * 1000000);
}

/* Until a thread sleeps, however busy the machine is. */
static void until_asleep(pid_t thread)
{
	char path[64], line[256], *end, state = 0;
	snprintf(path, sizeof(path), "/proc/%d/stat", thread);
	while (state != 'S') {
		FILE *stat = fopen(path, "r");
		if (!stat)
			fail("stat");
		end = fgets(line, sizeof(line), stat) ? strrchr(line, ')') : NULL;
		state = end ? end[2] : 0;
		fclose(stat);
		usleep(1000);
	}
}

static sem_t wanted, done;

static void *feeder(void *path)
{
	prctl(PR_SET_NAME, "feeder");
	for (int i = 0; i < TIMES; i++) {
		sem_wait(&wanted);
		until_asleep(getpid());
		spin(20);
		int end = open(path, O_WRONLY);
		if (end < 0)
			fail("open");
		close(end);
		sem_post(&done);
	}
	return 0;
}

int main(int count, char **arguments)
{
	struct io_uring_params of = {0};
	char *path = arguments[count - 1];
	pthread_t thread;

	// Whatever goes wrong, the test ends.
	alarm(30);
	if (mkfifo(path, 0600))
		fail("mkfifo");
	int ring = syscall(__NR_io_uring_setup, 8, &of);
	if (ring < 0)
		fail("io_uring_setup");
	int how = PROT_READ | PROT_WRITE, shared = MAP_SHARED | MAP_POPULATE;
	char *sq = mmap(0, of.sq_off.array + of.sq_entries * 4, how, shared, ring, IORING_OFF_SQ_RING);
	char *cq = mmap(0, of.cq_off.cqes + of.cq_entries * sizeof(struct io_uring_cqe), how, shared, ring, IORING_OFF_CQ_RING);
	struct io_uring_sqe *sqes = mmap(0, of.sq_entries * sizeof(*sqes), how, shared, ring, IORING_OFF_SQES);
	if (sq == MAP_FAILED || cq == MAP_FAILED || sqes == MAP_FAILED)
		fail("mmap");
	unsigned *sq_tail = (unsigned *)(sq + of.sq_off.tail), *sq_array = (unsigned *)(sq + of.sq_off.array);
	unsigned *cq_head = (unsigned *)(cq + of.cq_off.head);
	struct io_uring_cqe *cqes = (void *)(cq + of.cq_off.cqes);

	sem_init(&wanted, 0, 0);
	sem_init(&done, 0, 0);
	pthread_create(&thread, 0, feeder, path);
	for (int i = 0; i < TIMES; i++) {
		unsigned at = i & (of.sq_entries - 1);
		sqes[at] = (struct io_uring_sqe){.opcode = IORING_OP_OPENAT, .flags = IOSQE_ASYNC, .fd = AT_FDCWD,
			.addr = (uintptr_t)path, .open_flags = O_RDONLY, .user_data = FIRST + i};
		sq_array[at] = at;
		__atomic_store_n(sq_tail, i + 1, __ATOMIC_RELEASE);
		sem_post(&wanted);
		if (syscall(__NR_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) < 0)
			fail("io_uring_enter");
		int begun = cqes[i & (of.cq_entries - 1)].res;
		__atomic_store_n(cq_head, i + 1, __ATOMIC_RELEASE);
		printf("%d\n", begun);
		// Until the other end is closed this one is open: neither waits for the other for ever.
		sem_wait(&done);
		close(begun);
	}
	pthread_join(thread, 0);
	return 0;
}
