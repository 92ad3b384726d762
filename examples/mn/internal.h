/* What the files of the library share. */
#ifndef MN_INTERNAL_H
#define MN_INTERNAL_H

#define TB_OPTIONAL
#include <tracebraid/probe.h>

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "context.h"
#include "mn.h"
#include "truth.h"

struct lwp;

struct mn_thread {
	uint64_t id;
	mn_thread *next;	/* in a list */
	struct context context;
	void *(*function)(void *);
	void *argument;
	void *result;
	uint32_t guard;		/* of the members below */
	bool has_ended, is_detached;
	mn_thread *joiner;
	void *stack;
	size_t mapped;
	char name[64];
};

/* Called by the next user-level thread of an LWP, or by its scheduler, once the context of the
 * previous one has been saved: only then another LWP may continue it. */
typedef void after_switch(mn_thread *previous, void *argument);

struct lwp {
	int index;
	pid_t tid;
	mn_thread *current;	/* NULL while the scheduler's own code runs */
	struct context context;	/* of that code */
	mn_thread *previous;
	after_switch *after;
	void *argument;
	uint64_t polled;	/* time of the last poll for timers and descriptors */
	timer_t slice;
	struct truth truth;
};

extern struct mn_options mn_chosen;
extern struct lwp *mn_lwps;

/* The LWP of the caller. Never inlined nor merged: the address of a thread-local variable would be
 * kept across a switch to another LWP. */
struct lwp *mn_lwp(void);

/* Locks of a few instructions, held across a switch by `unlock_after`. */
void mn_acquire(uint32_t *guard);
void mn_release(uint32_t *guard);

void mn_push(struct mn_list *list, mn_thread *thread);
mn_thread *mn_pop(struct mn_list *list);

/* Run queues. */
void mn_enqueue(mn_thread *thread, bool is_first);
mn_thread *mn_dequeue(struct lwp *lwp);
bool mn_is_work(void);

/* Leaves the current user-level thread; returns when it runs again. */
void mn_leave(after_switch *after, void *argument);
after_switch mn_ready_after, mn_unlock_after, mn_end_after;
/* The current user-level thread waits; its guard is released once it has been left. */
void mn_block(const char *reason, uint32_t *guard);
void mn_wake(mn_thread *thread, bool is_first);
void mn_switch(struct lwp *lwp, mn_thread *next);
void mn_arrive(void);
void mn_entry(void) __attribute__((noreturn));

/* Idle LWPs. */
void mn_notify(void);
void mn_notify_poller(void);
void mn_idle(struct lwp *lwp);
void mn_end_all(void);
bool mn_have_all_ended(void);

/* Timers and descriptors. */
void mn_open_events(void);
void mn_close_events(void);
bool mn_is_poll_due(struct lwp *lwp);
void mn_poll(struct lwp *lwp, bool waits);
void mn_interrupt_poll(void);

/* Time slices. */
void mn_install_slices(void);
void mn_create_slice(struct lwp *lwp);
void mn_delete_slice(struct lwp *lwp);
void mn_start_slice(struct lwp *lwp);
void mn_stop_slice(struct lwp *lwp);

/* Threads and their stacks. */
mn_thread *mn_allocate(void);
void mn_free(mn_thread *thread);

static inline uint64_t mn_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline uint64_t mn_id(const mn_thread *thread)
{
	return thread ? thread->id : 0;
}

void mn_fail(const char *what) __attribute__((noreturn));

#endif
