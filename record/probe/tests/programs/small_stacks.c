/* Records event classes for the first time, and the first events of a thread, on small stacks. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <tracebraid/probe.h>

enum { STACK = 12288 };

static ucontext_t outside, inside;

static void user_level_thread(void)
{
	tb_ult_switch(0, 1);
	tb_ult_create(2, "second");
	tb_ult_block(1, "mutex");
	tb_ult_wake(1);
	tb_ult_name(1, "renamed");
	tb_ult_state(3, -1, TB_ULT_READY, "third", "");
	tb_span_begin(1, "span");
	tb_span_end(1);
	tb_counter("counter", 1);
	TB_PROF_IN();
	TB_PROF_OUT();
	for (int i = 0; i < 10000; i++)
		tb_ult_wake(1);
	tb_ult_exit(1);
}

static void *lwp(void *stack)
{
	getcontext(&inside);
	inside.uc_stack.ss_sp = stack;
	inside.uc_stack.ss_size = STACK;
	inside.uc_link = &outside;
	makecontext(&inside, user_level_thread, 0);
	swapcontext(&outside, &inside);
	return NULL;
}

int main(void)
{
	pthread_t thread;
	char *stack = mmap(NULL, STACK + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack == MAP_FAILED || mprotect(stack, 4096, PROT_NONE))
		return 1;
	tb_lwp_begin("test");
	if (pthread_create(&thread, NULL, lwp, stack + 4096))
		return 1;
	return pthread_join(thread, NULL);
}
