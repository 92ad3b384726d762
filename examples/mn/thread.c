/* User-level threads: switching, creation, end. */
#include "internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t last_id;
static uint64_t live;

/* --- Switching --- */

/* errno is thread-local, too: its address must not be kept across a switch. */
static __attribute__((noipa)) int read_errno(void)
{
	return errno;
}

static __attribute__((noipa)) void write_errno(int value)
{
	errno = value;
}

/* Continues with a user-level thread, or the scheduler's own code (NULL), on this LWP. The caller
 * calls mn_arrive next, perhaps on another LWP. */
void mn_switch(struct lwp *lwp, mn_thread *next)
{
	mn_thread *previous = lwp->current;
	MN_RECORD(lwp, TRUTH_SWITCH, mn_id(previous), mn_id(next), NULL, tb_ult_switch(mn_id(previous), mn_id(next)));
	lwp->previous = previous;
	lwp->current = next;
	mn_switch_context(previous ? &previous->context : &lwp->context, next ? &next->context : &lwp->context);
}

void mn_arrive(void)
{
	struct lwp *lwp = mn_lwp();
	after_switch *after = lwp->after;
	lwp->after = NULL;
	if (after)
		after(lwp->previous, lwp->argument);
}

void mn_leave(after_switch *after, void *argument)
{
	int saved = read_errno();
	struct lwp *lwp = mn_lwp();
	/* Only the scheduler's own code polls, so that what it wakes is not woken by this thread. */
	mn_thread *next = mn_is_poll_due(lwp) ? NULL : mn_dequeue(lwp);
	lwp->after = after;
	lwp->argument = argument;
	mn_switch(lwp, next);
	mn_arrive();
	write_errno(saved);
}

void mn_ready_after(mn_thread *previous, void *argument)
{
	(void)argument;
	mn_enqueue(previous, false);
}

void mn_unlock_after(mn_thread *previous, void *argument)
{
	(void)previous;
	mn_release(argument);
}

void mn_block(const char *reason, uint32_t *guard)
{
	struct lwp *lwp = mn_lwp();
	MN_RECORD(lwp, TRUTH_BLOCK, lwp->current->id, 0, reason, tb_ult_block(lwp->current->id, reason));
	mn_leave(mn_unlock_after, guard);
}

void mn_wake(mn_thread *thread, bool is_first)
{
	MN_RECORD(mn_lwp(), TRUTH_WAKE, thread->id, 0, NULL, tb_ult_wake(thread->id));
	mn_enqueue(thread, is_first);
}

void mn_yield(void)
{
	TB_PROF_IN();
	if (mn_is_work() || mn_is_poll_due(mn_lwp()))
		mn_leave(mn_ready_after, NULL);
	TB_PROF_OUT();
}

uint64_t mn_self(void)
{
	return mn_lwp()->current->id;
}

/* --- Stacks: those of joined threads are kept for new ones. --- */

static struct mn_list unused;
static uint32_t unused_guard;

enum { GUARD = 4096 };

/* Makes the lowest page inaccessible: a stack that is too small ends the program. Before Linux 6.13
 * this makes two mappings of one, of which a process may have about 65,000 by default. */
static void guard(char *stack)
{
	const int guard_install = 102;
	if (madvise(stack, GUARD, guard_install) && mprotect(stack, GUARD, PROT_NONE))
		mn_fail("mprotect");
}

mn_thread *mn_allocate(void)
{
	mn_acquire(&unused_guard);
	mn_thread *thread = mn_pop(&unused);
	mn_release(&unused_guard);
	if (thread)
		return thread;
	size_t size = GUARD + mn_chosen.stack_size;
	char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		mn_fail("mmap");
	guard(stack);
	size_t head = (sizeof(mn_thread) + 63) / 64 * 64;
	thread = (mn_thread *)(stack + size - head);
	thread->stack = stack;
	thread->mapped = size;
	return thread;
}

void mn_free(mn_thread *thread)
{
	mn_acquire(&unused_guard);
	mn_push(&unused, thread);
	mn_release(&unused_guard);
}

/* --- Creation and end --- */

void mn_entry(void)
{
	mn_arrive();
	mn_thread *self = mn_lwp()->current;
	mn_exit(self->function(self->argument));
}

mn_thread *mn_create(const char *name, void *(*function)(void *), void *argument)
{
	TB_PROF_IN();
	mn_thread *thread = mn_allocate();
	thread->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	thread->function = function;
	thread->argument = argument;
	thread->guard = 0;
	thread->has_ended = thread->is_detached = false;
	thread->joiner = NULL;
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	mn_make_context(&thread->context, thread->stack, (size_t)((char *)thread - (char *)thread->stack), mn_entry);
	__atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
	struct truth_entry *entry = mn_begin_truth(mn_lwp(), TRUTH_CREATE, thread->id, mn_id(mn_lwp()->current), NULL);
	tb_ult_create(thread->id, thread->name);
	mn_end_truth(entry);
	if (entry)
		entry->text = strdup(thread->name);
	mn_enqueue(thread, false);
	TB_PROF_OUT();
	return thread;
}

/* The thread has left its stack: others may free it. */
void mn_end_after(mn_thread *thread, void *argument)
{
	(void)argument;
	bool is_detached = thread->is_detached;
	mn_release(&thread->guard);
	if (is_detached)
		mn_free(thread);
	if (__atomic_sub_fetch(&live, 1, __ATOMIC_ACQ_REL) == 0)
		mn_end_all();
}

void mn_exit(void *result)
{
	struct lwp *lwp = mn_lwp();
	mn_thread *self = lwp->current;
	self->result = result;
	/* Until the stack has been left. */
	mn_acquire(&self->guard);
	self->has_ended = true;
	if (self->joiner)
		mn_wake(self->joiner, false);
	MN_RECORD(lwp, TRUTH_EXIT, self->id, 0, NULL, tb_ult_exit(self->id));
	mn_leave(mn_end_after, NULL);
	__builtin_unreachable();
}

void *mn_join(mn_thread *thread)
{
	TB_PROF_IN();
	mn_acquire(&thread->guard);
	if (!thread->has_ended) {
		thread->joiner = mn_lwp()->current;
		mn_block("join", &thread->guard);
		mn_acquire(&thread->guard);
	}
	mn_release(&thread->guard);
	void *result = thread->result;
	mn_free(thread);
	TB_PROF_OUT();
	return result;
}

void mn_detach(mn_thread *thread)
{
	mn_acquire(&thread->guard);
	bool has_ended = thread->has_ended;
	thread->is_detached = true;
	mn_release(&thread->guard);
	if (has_ended)
		mn_free(thread);
}
