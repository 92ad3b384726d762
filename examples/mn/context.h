/* Machine contexts: saved registers and a stack. */
#ifndef MN_CONTEXT_H
#define MN_CONTEXT_H

#include <stddef.h>

#if defined(__x86_64__) && !defined(MN_UCONTEXT)
struct context {
	void *stack_pointer;
};
#else
#include <ucontext.h>
struct context {
	ucontext_t saved;
};
#endif

/* Prepares a context that runs `entry`, which must not return, on a stack. */
void mn_make_context(struct context *context, void *stack, size_t size, void (*entry)(void));
/* Saves the caller's registers, and continues with those of another context. */
void mn_switch_context(struct context *from, const struct context *to);

#endif
