/* Waiting for a time or for a file descriptor: the scheduler polls between user-level threads, and
 * an LWP without work waits in epoll. */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Between polls while user-level threads run. */
static const uint64_t POLL_NS = 200000;
static const uint64_t NEVER = UINT64_MAX;

static int poller = -1, interrupter = -1;
/* Threads that wait for descriptors. */
static int waiting;
/* Held from the registration of a wait until its thread has been left. */
static uint32_t descriptors_guard, timers_guard;

void mn_open_events(void)
{
	poller = epoll_create1(EPOLL_CLOEXEC);
	interrupter = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
	if (poller < 0 || interrupter < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, interrupter, &event))
		mn_fail("epoll");
}

void mn_close_events(void)
{
	close(poller);
	close(interrupter);
}

/* --- Timers: a heap, earliest first --- */

struct alarm {
	uint64_t time;
	mn_thread *thread;
};

static struct alarm *alarms;
static size_t alarm_count, alarm_room;
static uint64_t earliest = UINT64_MAX;

static void sift_up(size_t at)
{
	for (; at > 0 && alarms[at].time < alarms[(at - 1) / 2].time; at = (at - 1) / 2) {
		struct alarm parent = alarms[(at - 1) / 2];
		alarms[(at - 1) / 2] = alarms[at];
		alarms[at] = parent;
	}
}

static void sift_down(size_t at)
{
	for (;;) {
		size_t least = at;
		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < alarm_count; child++)
			if (alarms[child].time < alarms[least].time)
				least = child;
		if (least == at)
			return;
		struct alarm moved = alarms[at];
		alarms[at] = alarms[least];
		alarms[least] = moved;
		at = least;
	}
}

static void note_earliest(void)
{
	__atomic_store_n(&earliest, alarm_count ? alarms[0].time : NEVER, __ATOMIC_SEQ_CST);
}

void mn_sleep(uint64_t nanoseconds)
{
	TB_PROF_IN();
	uint64_t time = mn_now() + nanoseconds;
	mn_acquire(&timers_guard);
	if (alarm_count == alarm_room) {
		alarm_room = alarm_room ? 2 * alarm_room : 64;
		alarms = realloc(alarms, alarm_room * sizeof(*alarms));
		if (!alarms)
			mn_fail("realloc");
	}
	alarms[alarm_count] = (struct alarm){ time, mn_lwp()->current };
	sift_up(alarm_count++);
	bool is_earlier = alarms[0].time == time;
	note_earliest();
	if (is_earlier)
		mn_notify_poller();
	mn_block("sleep", &timers_guard);
	TB_PROF_OUT();
}

static void wake_expired(uint64_t now)
{
	struct mn_list woken = { NULL, NULL };
	mn_acquire(&timers_guard);
	while (alarm_count && alarms[0].time <= now) {
		mn_push(&woken, alarms[0].thread);
		alarms[0] = alarms[--alarm_count];
		sift_down(0);
	}
	note_earliest();
	mn_release(&timers_guard);
	for (mn_thread *thread; (thread = mn_pop(&woken));)
		mn_wake(thread, false);
}

/* --- Descriptors --- */

void mn_wait_fd(int fd, uint32_t events)
{
	TB_PROF_IN();
	struct epoll_event event = { .events = events | EPOLLONESHOT, .data.ptr = mn_lwp()->current };
	mn_acquire(&descriptors_guard);
	__atomic_add_fetch(&waiting, 1, __ATOMIC_RELAXED);
	if (epoll_ctl(poller, EPOLL_CTL_MOD, fd, &event) && epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event))
		mn_fail("epoll_ctl");
	mn_block("io", &descriptors_guard);
	TB_PROF_OUT();
}

/* Only the LWP that waits takes the interruption: if another one that polls in between took it, epoll
 * would find nothing to report and wait on, with the old timeout. */
static void wake_waiting(const struct epoll_event *events, int count, bool waits)
{
	for (int index = 0; index < count; index++) {
		mn_thread *thread = events[index].data.ptr;
		if (!thread) {
			uint64_t number;
			if (waits && read(interrupter, &number, sizeof(number)) < 0 && errno != EAGAIN)
				mn_fail("eventfd");
			continue;
		}
		/* Once the guard is free, the thread has been left. */
		mn_acquire(&descriptors_guard);
		mn_release(&descriptors_guard);
		__atomic_sub_fetch(&waiting, 1, __ATOMIC_RELAXED);
		mn_wake(thread, true);
	}
}

/* --- Polling --- */

bool mn_is_poll_due(struct lwp *lwp)
{
	if (__atomic_load_n(&waiting, __ATOMIC_RELAXED) == 0 && __atomic_load_n(&earliest, __ATOMIC_RELAXED) == NEVER)
		return false;
	return mn_now() - lwp->polled >= POLL_NS;
}

static int timeout_ms(uint64_t now)
{
	uint64_t next = __atomic_load_n(&earliest, __ATOMIC_SEQ_CST);
	if (next == NEVER)
		return -1;
	/* Rounded up: earlier than the timer there is nothing to do. */
	return next <= now ? 0 : (int)((next - now + 999999) / 1000000);
}

void mn_poll(struct lwp *lwp, bool waits)
{
	struct epoll_event events[64];
	lwp->polled = mn_now();
	int count = epoll_wait(poller, events, 64, waits ? timeout_ms(lwp->polled) : 0);
	if (count > 0)
		wake_waiting(events, count, waits);
	lwp->polled = mn_now();
	if (__atomic_load_n(&earliest, __ATOMIC_RELAXED) <= lwp->polled)
		wake_expired(lwp->polled);
}

void mn_interrupt_poll(void)
{
	uint64_t one = 1;
	if (write(interrupter, &one, sizeof(one)) < 0 && errno != EAGAIN)
		mn_fail("eventfd");
}
