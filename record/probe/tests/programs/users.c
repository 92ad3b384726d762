/* Programs that root starts, and that give up root.
 *   worker N    a forked child becomes another user, then traces N times
 *   self N      traces N times, becomes another user, traces N times more; so does a second thread
 *   again N     becomes that user, traces N times */
#define _GNU_SOURCE
#include <grp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracebraid/probe.h>

TB_EVENT(test, master, TB_UINT64(n));
TB_EVENT(test, numbered, TB_UINT64(n), TB_UINT64(check));
TB_EVENT(test, after, TB_UINT64(n));

static uint64_t count;

static uint64_t check_of(uint64_t n)
{
	return n * 0x9E3779B97F4A7C15u + 1;
}

static void write_records(uint64_t from, uint64_t how_many)
{
	for (uint64_t n = from; n < from + how_many; n++)
		tb_trace(test, numbered, n, check_of(n));
}

static void give_up_root(void)
{
	if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
		abort();
}

static void *beside(void *unused)
{
	for (uint64_t n = 0; n < 2 * count; n++)
		tb_trace(test, after, n);
	return unused;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	count = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
	if (!strcmp(what, "worker")) {
		tb_trace(test, master, 1);
		pid_t child = fork();
		if (child == 0) {
			give_up_root();
			write_records(0, count);
			_exit(0);
		}
		int status = 0;
		waitpid(child, &status, 0);
		tb_trace(test, master, 2);
		return status != 0;
	}
	if (!strcmp(what, "self")) {
		pthread_t thread;
		pthread_create(&thread, NULL, beside, NULL);
		write_records(0, count);
		give_up_root();
		write_records(count, count);
		pthread_join(thread, NULL);
		return 0;
	}
	if (!strcmp(what, "again")) {
		if (getuid() == 0)
			give_up_root();
		write_records(0, count);
		return 0;
	}
	return 2;
}
