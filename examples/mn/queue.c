/* Locks, lists and run queues. */
#include "internal.h"

#include <sched.h>
#include <stdlib.h>

void mn_acquire(uint32_t *guard)
{
	for (int tries = 1; __atomic_exchange_n(guard, 1, __ATOMIC_ACQUIRE); tries++)
		/* Its holder may have been preempted by the kernel. */
		if (tries % 64 == 0)
			sched_yield();
}

void mn_release(uint32_t *guard)
{
	__atomic_store_n(guard, 0, __ATOMIC_RELEASE);
}

void mn_push(struct mn_list *list, mn_thread *thread)
{
	thread->next = NULL;
	if (list->last)
		list->last->next = thread;
	else
		list->first = thread;
	list->last = thread;
}

mn_thread *mn_pop(struct mn_list *list)
{
	mn_thread *thread = list->first;
	if (thread) {
		list->first = thread->next;
		if (!list->first)
			list->last = NULL;
	}
	return thread;
}

static void push_first(struct mn_list *list, mn_thread *thread)
{
	thread->next = list->first;
	list->first = thread;
	if (!list->last)
		list->last = thread;
}

/* Each in its own cache lines. */
struct run_queue {
	uint32_t guard;
	int length;
	struct mn_list threads;
} __attribute__((aligned(128)));

enum { MOST_QUEUES = 256 };
static struct run_queue queues[MOST_QUEUES];

static int count(void)
{
	return mn_chosen.queues == MN_SHARED ? 1 : mn_chosen.lwps;
}

void mn_enqueue(mn_thread *thread, bool is_first)
{
	struct run_queue *queue = &queues[mn_lwp()->index % count()];
	mn_acquire(&queue->guard);
	if (is_first)
		push_first(&queue->threads, thread);
	else
		mn_push(&queue->threads, thread);
	__atomic_store_n(&queue->length, queue->length + 1, __ATOMIC_RELAXED);
	mn_release(&queue->guard);
	mn_notify();
}

static mn_thread *take(struct run_queue *queue)
{
	if (__atomic_load_n(&queue->length, __ATOMIC_RELAXED) == 0)
		return NULL;
	mn_acquire(&queue->guard);
	mn_thread *thread = mn_pop(&queue->threads);
	if (thread)
		__atomic_store_n(&queue->length, queue->length - 1, __ATOMIC_RELAXED);
	mn_release(&queue->guard);
	return thread;
}

mn_thread *mn_dequeue(struct lwp *lwp)
{
	for (int other = 0; other < count(); other++) {
		mn_thread *thread = take(&queues[(lwp->index + other) % count()]);
		if (thread)
			return thread;
	}
	return NULL;
}

bool mn_is_work(void)
{
	for (int index = 0; index < count(); index++)
		if (__atomic_load_n(&queues[index].length, __ATOMIC_RELAXED))
			return true;
	return false;
}
