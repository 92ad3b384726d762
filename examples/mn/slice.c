/* Time slices: each LWP has a timer, whose signal makes it leave its user-level thread.
 *
 * The scheduler and all libraries are not preemptible: another user-level thread on the same LWP
 * would find their locks taken and their thread-local variables half changed. So the handler
 * switches only if it has interrupted code of the program's own executable; otherwise the next
 * signal tries again. A user-level thread that was left in the handler returns from it where it is
 * continued, perhaps on another LWP: the kernel restores registers and signal mask, which are the
 * same on all LWPs, but no thread pointer. */
#define _GNU_SOURCE
#include "internal.h"

#include <link.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static uintptr_t program_begin, program_end;

static int find_program(struct dl_phdr_info *info, size_t size, void *argument)
{
	(void)size;
	(void)argument;
	for (int index = 0; index < info->dlpi_phnum; index++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[index];
		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X) {
			program_begin = info->dlpi_addr + segment->p_vaddr;
			program_end = program_begin + segment->p_memsz;
		}
	}
	/* The program comes first. */
	return 1;
}

static uintptr_t interrupted(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)context->uc_mcontext.pc;
#else
	/* No preemption. */
	(void)context;
	return 0;
#endif
}

static void end_slice(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	uintptr_t at = interrupted(context);
	if (at < program_begin || at >= program_end)
		return;
	struct lwp *lwp = mn_lwp();
	if (lwp && lwp->current && (mn_is_work() || mn_is_poll_due(lwp)))
		mn_leave(mn_ready_after, NULL);
}

void mn_install_slices(void)
{
	if (!mn_chosen.slice_us)
		return;
	dl_iterate_phdr(find_program, NULL);
	struct sigaction action = { .sa_sigaction = end_slice };
	/* Not blocked meanwhile: the next user-level thread is outside the handler. */
	action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
	sigaction(SIGURG, &action, NULL);
}

static void set(struct lwp *lwp, uint64_t nanoseconds)
{
	if (!mn_chosen.slice_us)
		return;
	struct timespec time = { (time_t)(nanoseconds / 1000000000), (long)(nanoseconds % 1000000000) };
	struct itimerspec slice = { .it_interval = time, .it_value = time };
	timer_settime(lwp->slice, 0, &slice, NULL);
}

void mn_create_slice(struct lwp *lwp)
{
	if (!mn_chosen.slice_us)
		return;
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGURG };
	event.sigev_notify_thread_id = lwp->tid;
	if (timer_create(CLOCK_MONOTONIC, &event, &lwp->slice))
		mn_fail("timer_create");
}

void mn_delete_slice(struct lwp *lwp)
{
	if (mn_chosen.slice_us)
		timer_delete(lwp->slice);
}

void mn_start_slice(struct lwp *lwp)
{
	set(lwp, (uint64_t)mn_chosen.slice_us * 1000);
}

void mn_stop_slice(struct lwp *lwp)
{
	set(lwp, 0);
}
