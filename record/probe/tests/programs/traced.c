/* The program that the tests trace. The first argument selects an action; prints the numbers of
 * events fired. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "values.h"

TB_EVENT(test, numbered, TB_UINT64(n), TB_UINT64(check));
TB_EVENT(test, inner, TB_UINT64(n), TB_STRING(text), TB_UINT64(check));
/* `last`: the time after the previous event record had been written. */
TB_EVENT(test, clock, TB_UINT64(before), TB_UINT64(last));
TB_EVENT(test, after, TB_UINT64(n));

static uint64_t check_of(uint64_t n)
{
	return n * 0x9E3779B97F4A7C15u + 1;
}

static void numbered(uint64_t n)
{
	tb_trace(test, numbered, n, check_of(n));
}

static atomic_ulong inner_count;
static atomic_int done;

static void storm_handler(int signal)
{
	uint64_t n = atomic_fetch_add(&inner_count, 1);
	tb_trace(test, inner, n, signal == SIGUSR1 ? "one" : "another one", check_of(n));
}

static void handle(int signal, void (*handler)(int))
{
	struct sigaction action = { 0 };
	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	sigaction(signal, &action, NULL);
}

/* Starts a timer that sends a signal every `period` nanoseconds. */
static void tick(int signal, long period)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal };
	struct itimerspec time = { { 0, period }, { 0, period } };
	timer_t timer;
	handle(signal, storm_handler);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &time, NULL);
}

static int storm(uint64_t count)
{
	uint64_t most = 50 * count, n = 0;
	tick(SIGUSR1, 23000);
	tick(SIGUSR2, 37000);
	for (; n < count || (n < most && atomic_load(&inner_count) < 4000); n++)
		numbered(n);
	handle(SIGUSR1, SIG_IGN);
	handle(SIGUSR2, SIG_IGN);
	printf("%lu %lu\n", (unsigned long)n, atomic_load(&inner_count));
	return 0;
}

/* A record that stays open while `count` other records are written, as when a handler has
 * interrupted its probe. */
static int held(uint64_t count)
{
	const struct tb_class *held_class = &tb_class_test_after;
	uint64_t n = 7;
	void *room = tb_reserve(held_class, sizeof(n));
	for (uint64_t other = 0; other < count; other++)
		numbered(other);
	memcpy(room, &n, sizeof(n));
	tb_commit(held_class, room);
	return printf("%llu\n", (unsigned long long)count) < 0;
}

/* Like `storm`, in a child that shares all memory and that the kernel does not watch. */
static int vforked(uint64_t count)
{
	static volatile uint64_t fired = 1;
	numbered(0);
	pid_t pid = vfork();
	if (pid == 0) {
		tick(SIGUSR1, 23000);
		for (; fired < count || (fired < 50 * count && atomic_load(&inner_count) < 400); fired++)
			numbered(fired);
		_exit(0);
	}
	int status;
	waitpid(pid, &status, 0);
	for (uint64_t n = 0; n < 1000; n++)
		tb_trace(test, after, n);
	printf("%lu %lu %d\n", (unsigned long)fired, atomic_load(&inner_count), status);
	return 0;
}

static sigjmp_buf back;

static void jump_handler(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

static int jump(uint64_t count)
{
	static volatile uint64_t jumps, n;
	handle(SIGALRM, jump_handler);
	while (jumps++ < count) {
		if (sigsetjmp(back, 1) == 0) {
			struct itimerval time = { .it_value = { 0, 50 + (suseconds_t)(jumps * 7 % 40) } };
			setitimer(ITIMER_REAL, &time, NULL);
			for (;;) {
				n = n + 1;
				numbered(n);
			}
		}
	}
	handle(SIGALRM, SIG_IGN);
	for (uint64_t i = 0; i < 1000; i++)
		tb_trace(test, after, i);
	printf("%lu\n", (unsigned long)n);
	return 0;
}

static int killed(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	if (ftruncate(fd, 4096))
		return 1;
	volatile uint64_t *progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (uint64_t n = 0;; n++) {
		numbered(n);
		*progress = n + 1;
	}
}

static atomic_ulong forked;

static void fork_handler(int signal)
{
	(void)signal;
	unsigned long count = atomic_fetch_add(&forked, 1);
	if (count >= 40)
		return;
	pid_t pid = fork();
	if (pid == 0) {
		setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
		atomic_store(&done, 1);
		if (count % 2 == 0) {
			for (uint64_t i = 0; i < 100; i++)
				tb_trace(test, after, i);
			_exit(0);
		}
		/* The other children return to the interrupted probe. */
	}
}

static int forks(void)
{
	pid_t parent = getpid();
	uint64_t n = 0;
	handle(SIGALRM, fork_handler);
	setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 1500 }, { 0, 1500 } }, NULL);
	while (atomic_load(&forked) < 41 && !atomic_load(&done))
		numbered(n++);
	if (getpid() != parent) {
		for (uint64_t i = 0; i < 100; i++)
			tb_trace(test, after, i);
		return 0;
	}
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	int failed = 0, status;
	while (wait(&status) > 0)
		failed += status != 0;
	printf("%lu %d\n", (unsigned long)n, failed);
	return 0;
}

static int is_early;

/* Called in a child before the library's fork handler. */
static void early_child(void)
{
	if (is_early)
		numbered(0);
}

__attribute__((constructor(101))) static void take_first_place(void)
{
	pthread_atfork(NULL, NULL, early_child);
}

static int early(uint64_t count)
{
	is_early = 1;
	tb_trace(test, after, 0);
	pid_t pid = fork();
	if (pid == 0) {
		for (uint64_t n = 1; n < count; n++)
			numbered(n);
		return 0;
	}
	int status;
	waitpid(pid, &status, 0);
	tb_trace(test, after, 1);
	return status;
}

static void *short_thread(void *number)
{
	for (uint64_t i = 0; i < 10; i++)
		numbered((uint64_t)(uintptr_t)number * 10 + i);
	return NULL;
}

static int threads(uint64_t count)
{
	pthread_t ids[8];
	for (uint64_t n = 0; n < count; n += 8) {
		for (int i = 0; i < 8; i++)
			pthread_create(&ids[i], NULL, short_thread, (void *)(uintptr_t)(n + i));
		for (int i = 0; i < 8; i++)
			pthread_join(ids[i], NULL);
	}
	return 0;
}

static void *flood(void *count)
{
	for (uint64_t n = 0; n < (uint64_t)(uintptr_t)count; n++)
		numbered(n);
	return NULL;
}

/* Event classes that are registered one after another, each immediately before its first event. */
static int late(uint64_t count)
{
	for (uint64_t n = 0; n < count; n++) {
		struct tb_class *late_class = calloc(1, sizeof(*late_class));
		char *name = malloc(32);
		snprintf(name, 32, "late:n%lu", (unsigned long)n);
		late_class->name = name;
		late_class->enabled = &late_class->off;
		late_class->fields = "integer { size = 64; align = 8; signed = false; } _n;\n";
		tb_register(late_class);
		if (*late_class->enabled)
			tb_record(late_class, &n, sizeof(n));
		usleep(200);
	}
	return 0;
}

static uint64_t nanoseconds(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int overrun(uint64_t count)
{
	pthread_t ids[4];
	uint64_t begin = nanoseconds();
	for (int i = 0; i < 4; i++)
		pthread_create(&ids[i], NULL, flood, (void *)(uintptr_t)count);
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	printf("%lu %lu\n", (unsigned long)count * 4, (unsigned long)(nanoseconds() - begin));
	return 0;
}

static int limited(uint64_t count, rlim_t bytes)
{
	if (bytes)
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){ bytes, bytes });
	flood((void *)(uintptr_t)count);
	printf("%lu\n", (unsigned long)count);
	return 0;
}

static int clocks(void)
{
	uint64_t end = nanoseconds() + 1500000000u, last = 0;
	for (int n = 0; n < 2000 || nanoseconds() < end; n++) {
		uint64_t before = nanoseconds();
		tb_trace(test, clock, before, last);
		last = nanoseconds();
		usleep(100);
	}
	return 0;
}

static int loads(const char *library)
{
	for (int i = 0; i < 3; i++) {
		void *loaded = dlopen(library, RTLD_NOW);
		if (!loaded) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		void (*trace)(int) = (void (*)(int))dlsym(loaded, "plugin_trace");
		trace(i);
		dlclose(loaded);
	}
	return 0;
}

/* For each line read, traces `numbered` and `none` once; if the line names a library, loads it. */
static int commanded(void)
{
	char line[1024];
	uint64_t n = 0;
	void (*trace)(int) = NULL;
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (line[0] == '/') {
			void *loaded = dlopen(line, RTLD_NOW);
			trace = (void (*)(int))dlsym(loaded, "plugin_trace");
		}
		numbered(n++);
		tb_trace(test, none);
		if (trace)
			trace((int)n);
		puts("done");
		fflush(stdout);
	}
	return 0;
}

#ifdef MANY_KEYS
/* Runs before the constructors of probes. */
__attribute__((constructor(101))) static void take_keys(void)
{
	for (int i = 0; i < 64; i++) {
		pthread_key_t key;
		pthread_key_create(&key, NULL);
	}
}
#endif

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	const char *argument = argc > 2 ? argv[2] : "0";
	uint64_t count = strtoull(argument, NULL, 10);
	if (!strcmp(what, "values"))
		return values();
	if (!strcmp(what, "storm"))
		return storm(count);
	if (!strcmp(what, "vforked"))
		return vforked(count);
	if (!strcmp(what, "held"))
		return held(count);
	if (!strcmp(what, "jump"))
		return jump(count);
	if (!strcmp(what, "killed"))
		return killed(argument);
	if (!strcmp(what, "forks"))
		return forks();
	if (!strcmp(what, "early"))
		return early(count);
	if (!strcmp(what, "threads"))
		return threads(count);
	if (!strcmp(what, "overrun"))
		return overrun(count);
	if (!strcmp(what, "limited"))
		return limited(count, argc > 3 ? strtoull(argv[3], NULL, 10) : 0);
	if (!strcmp(what, "clocks"))
		return clocks();
	if (!strcmp(what, "late"))
		return late(count);
	if (!strcmp(what, "loads"))
		return loads(argument);
	if (!strcmp(what, "commanded"))
		return commanded();
	return 2;
}
