/* Shared by the programs of the case studies: work that takes a known time, and clocks. */
#ifndef CASE_STUDY_WORK_H
#define CASE_STUDY_WORK_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

/* Rounds of work in a millisecond. */
static uint64_t rounds_of_ms = 1;

/* Computes without function calls, so that stacks end in the caller. */
__attribute__((always_inline)) static inline void compute(uint64_t rounds)
{
	uint64_t number = 1;
	for (uint64_t i = 0; i < rounds; i++) {
		number = number * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(number));
	}
}

/* Uses the CPU for a number of milliseconds. */
#define burn(ms) compute((uint64_t)((ms) * (double)rounds_of_ms))

static inline int64_t nanoseconds(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Measures the rounds in a millisecond: the fastest of some tries, as others may have been disturbed. */
__attribute__((noinline, unused)) static void calibrate(void)
{
	const uint64_t rounds = 1000000;
	int64_t best = INT64_MAX;
	for (int i = 0; i < 5; i++) {
		int64_t begin = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
		compute(rounds);
		int64_t took = nanoseconds(CLOCK_THREAD_CPUTIME_ID) - begin;
		best = took < best ? took : best;
	}
	rounds_of_ms = rounds * 1000000 / (uint64_t)(best > 0 ? best : 1);
}

/* Sleeps until `after` nanoseconds after a time. */
static inline void sleep_until(const struct timespec *start, int64_t after)
{
	int64_t time = start->tv_sec * 1000000000LL + start->tv_nsec + after;
	struct timespec until = { .tv_sec = time / 1000000000, .tv_nsec = time % 1000000000 };
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}

/* Binds the calling thread, and the threads that it creates, to the last CPU that it may use. */
static inline void stay_on_last_cpu(void)
{
	cpu_set_t all, one;
	int last = 0;
	if (sched_getaffinity(0, sizeof all, &all))
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all))
			last = cpu;
	CPU_ZERO(&one);
	CPU_SET(last, &one);
	sched_setaffinity(0, sizeof one, &one);
}

/* Makes the calling thread a real-time thread; without that right, raises its priority: other programs
 * of the machine are not the subject. */
static inline void go_before(int priority)
{
	struct sched_param parameters = { .sched_priority = priority };
	if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters))
		setpriority(PRIO_PROCESS, 0, -priority);
}

#endif
