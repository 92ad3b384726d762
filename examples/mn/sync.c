/* Mutexes and conditions. */
#include "internal.h"

void mn_lock(mn_mutex *mutex)
{
	TB_PROF_IN();
	mn_thread *self = mn_lwp()->current;
	mn_acquire(&mutex->guard);
	if (!mutex->owner) {
		mutex->owner = self;
		mn_release(&mutex->guard);
	} else {
		mn_push(&mutex->waiters, self);
		mn_block("mutex", &mutex->guard);
	}
	TB_PROF_OUT();
}

void mn_unlock(mn_mutex *mutex)
{
	TB_PROF_IN();
	mn_acquire(&mutex->guard);
	mn_thread *next = mutex->owner = mn_pop(&mutex->waiters);
	mn_release(&mutex->guard);
	if (next)
		mn_wake(next, false);
	TB_PROF_OUT();
}

void mn_wait(mn_condition *condition, mn_mutex *mutex)
{
	TB_PROF_IN();
	mn_acquire(&condition->guard);
	mn_push(&condition->waiters, mn_lwp()->current);
	/* A signal that follows finds this thread, but can wake it only once it has been left. */
	mn_unlock(mutex);
	mn_block("condition", &condition->guard);
	mn_lock(mutex);
	TB_PROF_OUT();
}

void mn_signal(mn_condition *condition)
{
	TB_PROF_IN();
	mn_acquire(&condition->guard);
	mn_thread *thread = mn_pop(&condition->waiters);
	mn_release(&condition->guard);
	if (thread)
		mn_wake(thread, false);
	TB_PROF_OUT();
}

void mn_broadcast(mn_condition *condition)
{
	TB_PROF_IN();
	mn_acquire(&condition->guard);
	struct mn_list woken = condition->waiters;
	condition->waiters = (struct mn_list){ NULL, NULL };
	mn_release(&condition->guard);
	for (mn_thread *thread; (thread = mn_pop(&woken));)
		mn_wake(thread, false);
	TB_PROF_OUT();
}
