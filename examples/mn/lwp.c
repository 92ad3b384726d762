/* LWPs: their life, and what they do without a user-level thread. */
#define _GNU_SOURCE
#include "internal.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

struct mn_options mn_chosen;
struct lwp *mn_lwps;

static __thread struct lwp *own __attribute__((tls_model("initial-exec")));

__attribute__((noipa)) struct lwp *mn_lwp(void)
{
	return own;
}

void mn_fail(const char *what)
{
	perror(what);
	abort();
}

/* --- Idle: one LWP waits for timers and descriptors, the others for `work`. --- */

static uint32_t work;	/* a futex: changes when there is work */
static int sleeping;
static bool is_polling;
static bool have_ended;

static void wake_sleeping(int count)
{
	__atomic_add_fetch(&work, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &work, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

void mn_notify(void)
{
	/* An LWP declares that it is idle first, and then looks for work. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&sleeping, __ATOMIC_RELAXED))
		wake_sleeping(1);
	else
		mn_notify_poller();
}

void mn_notify_poller(void)
{
	if (__atomic_load_n(&is_polling, __ATOMIC_SEQ_CST))
		mn_interrupt_poll();
}

static bool has_reason_to_run(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return mn_is_work() || mn_have_all_ended();
}

void mn_idle(struct lwp *lwp)
{
	if (!__atomic_exchange_n(&is_polling, true, __ATOMIC_SEQ_CST)) {
		if (!has_reason_to_run())
			mn_poll(lwp, true);
		__atomic_store_n(&is_polling, false, __ATOMIC_SEQ_CST);
		/* While this LWP runs user-level threads, another one waits for events. */
		if (__atomic_load_n(&sleeping, __ATOMIC_SEQ_CST))
			wake_sleeping(1);
	} else {
		uint32_t seen = __atomic_load_n(&work, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&sleeping, 1, __ATOMIC_SEQ_CST);
		/* The poller may have left meanwhile. */
		if (!has_reason_to_run() && __atomic_load_n(&is_polling, __ATOMIC_SEQ_CST))
			syscall(SYS_futex, &work, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
		__atomic_sub_fetch(&sleeping, 1, __ATOMIC_SEQ_CST);
	}
}

void mn_end_all(void)
{
	__atomic_store_n(&have_ended, true, __ATOMIC_SEQ_CST);
	wake_sleeping(mn_chosen.lwps);
	mn_interrupt_poll();
}

bool mn_have_all_ended(void)
{
	return __atomic_load_n(&have_ended, __ATOMIC_SEQ_CST);
}

/* --- Life --- */

/* The scheduler's own code: it runs while no user-level thread does. */
static void schedule(struct lwp *lwp)
{
	while (!mn_have_all_ended()) {
		if (mn_is_poll_due(lwp))
			mn_poll(lwp, false);
		mn_thread *next = mn_dequeue(lwp);
		if (!next) {
			mn_stop_slice(lwp);
			mn_idle(lwp);
			mn_start_slice(lwp);
			continue;
		}
		mn_switch(lwp, next);
		mn_arrive();
	}
}

static void begin_lwp(struct lwp *lwp)
{
	own = lwp;
	lwp->tid = (pid_t)syscall(SYS_gettid);
	MN_RECORD(lwp, TRUTH_LWP_BEGIN, 0, 0, NULL, tb_lwp_begin("mn"));
	mn_create_slice(lwp);
}

static void *run_lwp(void *argument)
{
	struct lwp *lwp = argument;
	if (lwp->index > 0)
		begin_lwp(lwp);
	mn_start_slice(lwp);
	schedule(lwp);
	mn_delete_slice(lwp);
	MN_RECORD(lwp, TRUTH_LWP_END, 0, 0, NULL, tb_lwp_end());
	own = NULL;
	return NULL;
}

static void choose(const struct mn_options *options)
{
	mn_chosen = *options;
	if (mn_chosen.lwps <= 0)
		mn_chosen.lwps = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (mn_chosen.lwps > 256)
		mn_chosen.lwps = 256;
	if (!mn_chosen.stack_size)
		mn_chosen.stack_size = 65536;
}

void mn_run(const struct mn_options *options, void *(*function)(void *), void *argument)
{
	choose(options);
	mn_open_truth();
	mn_open_events();
	mn_install_slices();
	have_ended = false;
	mn_lwps = calloc((size_t)mn_chosen.lwps, sizeof(*mn_lwps));
	pthread_t *threads = calloc((size_t)mn_chosen.lwps, sizeof(*threads));
	if (!mn_lwps || !threads)
		mn_fail("calloc");
	for (int index = 0; index < mn_chosen.lwps; index++)
		mn_lwps[index].index = index;
	/* The first LWP creates the first user-level thread. */
	begin_lwp(&mn_lwps[0]);
	mn_detach(mn_create("main", function, argument));
	for (int index = 1; index < mn_chosen.lwps; index++)
		if (pthread_create(&threads[index], NULL, run_lwp, &mn_lwps[index]))
			mn_fail("pthread_create");
	run_lwp(&mn_lwps[0]);
	for (int index = 1; index < mn_chosen.lwps; index++)
		pthread_join(threads[index], NULL);
	mn_write_truth();
	mn_close_events();
	free(threads);
	free(mn_lwps);
}
