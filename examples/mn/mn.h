/* User-level threads on kernel threads (LWPs), M:N. See ../README.md.
 *
 * A user-level thread is switched when it waits, yields or ends, and at the end of its time slice,
 * but then only where code of the program itself runs, not within a library: neither this one nor
 * the C library is re-entered by another user-level thread. Callbacks of the C library (qsort) must
 * not wait. A user-level thread may continue on another LWP: it must use no thread-local variables;
 * errno is kept.
 */
#ifndef MN_H
#define MN_H

#include <stddef.h>
#include <stdint.h>

typedef struct mn_thread mn_thread;

enum mn_queues {
	MN_SHARED,	/* one run queue */
	MN_STEALING,	/* one for each LWP; an LWP without work takes from others */
};

struct mn_options {
	int lwps;		/* 0: one for each CPU */
	enum mn_queues queues;
	unsigned slice_us;	/* time slice; 0: no preemption */
	size_t stack_size;	/* of a user-level thread in bytes; 0: 64 KiB */
};

/* Runs `function` as the first user-level thread; returns when all have ended. The calling thread
 * is the first LWP meanwhile. */
void mn_run(const struct mn_options *options, void *(*function)(void *), void *argument);

/* Thread and its result live until it is joined, or, if it is detached, until it ends. */
mn_thread *mn_create(const char *name, void *(*function)(void *), void *argument);
void *mn_join(mn_thread *thread);
void mn_detach(mn_thread *thread);
void mn_yield(void);
void mn_exit(void *result) __attribute__((noreturn));
/* Id of the calling user-level thread, from 1. Ids are not reused. */
uint64_t mn_self(void);

/* A user-level thread that waits; private. */
struct mn_list {
	mn_thread *first, *last;
};

/* Fair: unlocking hands the mutex to the thread that has waited longest. Zero-initialized. */
typedef struct mn_mutex {
	uint32_t guard;
	mn_thread *owner;
	struct mn_list waiters;
} mn_mutex;

void mn_lock(mn_mutex *mutex);
void mn_unlock(mn_mutex *mutex);

/* Zero-initialized. The predicate may have changed between the signal and the return of the wait. */
typedef struct mn_condition {
	uint32_t guard;
	struct mn_list waiters;
} mn_condition;

void mn_wait(mn_condition *condition, mn_mutex *mutex);
void mn_signal(mn_condition *condition);
void mn_broadcast(mn_condition *condition);

void mn_sleep(uint64_t nanoseconds);
/* Waits until one of the events (EPOLLIN, ...) of a file descriptor, for one thread at a time.
 * Only this thread waits: its LWP runs others. Such a thread runs before those that are ready. */
void mn_wait_fd(int fd, uint32_t events);

/* Ground truth: logs that the thread with this id runs on this LWP and CPU now. */
void mn_sample(uint64_t self);

#endif
