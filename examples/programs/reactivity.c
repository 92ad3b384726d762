/* Figure 3 of Danjean, Wacrenier, Namyst 2005: how soon a thread handles a message while others
 * compute.
 *
 *   reactivity mode=poll|block threads=20 messages=50 every=20000 lwps=4 slice=10000 hogs=0
 *
 * mode=poll: the daemon calls select without waiting, and yields if there is no message; each time
 * it waits until all other threads have used their time slices. mode=block: it leaves the waiting
 * to the scheduler, which gives it the next time slice.
 *
 * A process outside the library sends the messages over the loopback, one each `every`
 * microseconds on average. For each message it prints to `log=FILE` the number and the times of
 * CLOCK_MONOTONIC before and after sending; the daemon, the number and the time of its handling.
 */
#include "common.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>

TB_EVENT(reactivity, sent, TB_UINT64(number));
TB_EVENT(reactivity, received, TB_UINT64(number), TB_UINT64(sent_ns));

struct message {
	uint64_t number, sent_ns;
};

static char **given;
static bool has_ended;
static int receiver;

static void *work(void *argument)
{
	uint64_t self = mn_self(), sum = 0;
	(void)argument;
	while (!__atomic_load_n(&has_ended, __ATOMIC_RELAXED)) {
		sum += compute(100000);
		mn_sample(self);
	}
	return (void *)(uintptr_t)sum;
}

/* --- The daemon --- */

static bool is_readable(int fd)
{
	struct timeval none = { 0, 0 };
	fd_set set;
	FD_ZERO(&set);
	FD_SET(fd, &set);
	return select(fd + 1, &set, NULL, NULL, &none) > 0;
}

static void wait_for_message(bool polls)
{
	TB_PROF_IN();
	if (polls)
		while (!is_readable(receiver))
			mn_yield();
	else
		mn_wait_fd(receiver, EPOLLIN);
	TB_PROF_OUT();
}

static int by_size(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
	return (a > b) - (a < b);
}

static void *serve(void *argument)
{
	long messages = option(given, "messages", 50);
	bool polls = !strcmp(option_text(given, "mode", "block"), "poll");
	FILE *log = argument;
	uint64_t *delays = calloc((size_t)messages, sizeof(*delays));
	for (long count = 0; count < messages;) {
		wait_for_message(polls);
		struct message message;
		while (count < messages &&
		       recv(receiver, &message, sizeof(message), MSG_DONTWAIT) == (ssize_t)sizeof(message)) {
			uint64_t now = now_ns();
			tb_trace(reactivity, received, message.number, message.sent_ns);
			delays[count++] = now - message.sent_ns;
			if (log)
				fprintf(log, "received %" PRIu64 " %" PRIu64 "\n", message.number, now);
		}
	}
	__atomic_store_n(&has_ended, true, __ATOMIC_RELAXED);
	qsort(delays, (size_t)messages, sizeof(*delays), by_size);
	printf("%ld messages handled: median %.3f ms, maximum %.3f ms after sending\n", messages,
	       (double)delays[messages / 2] / 1e6, (double)delays[messages - 1] / 1e6);
	free(delays);
	return NULL;
}

static void *run(void *argument)
{
	mn_thread *threads[1024];
	long count = option(given, "threads", 20);
	for (long index = 0; index < count && index < 1024; index++) {
		char name[32];
		snprintf(name, sizeof(name), "work/%ld", index);
		threads[index] = mn_create(name, work, NULL);
	}
	mn_thread *daemon = mn_create("daemon", serve, argument);
	mn_join(daemon);
	for (long index = 0; index < count && index < 1024; index++)
		mn_join(threads[index]);
	return NULL;
}

/* --- The client, a process of its own --- */

static void send_all(const struct sockaddr_in *to, FILE *log)
{
	int sender = socket(AF_INET, SOCK_DGRAM, 0);
	long messages = option(given, "messages", 50), every = option(given, "every", 20000);
	/* Not in step with the time slices. */
	uint64_t seed = 1;
	prctl(PR_SET_NAME, "client");
	for (long number = 0; number < messages; number++) {
		usleep((useconds_t)(every / 2 + (long)(next_random(&seed) % (uint64_t)every)));
		struct message message = { (uint64_t)number, now_ns() };
		tb_trace(reactivity, sent, message.number);
		if (sendto(sender, &message, sizeof(message), 0, (const struct sockaddr *)to, sizeof(*to)) < 0)
			perror("sendto");
		if (log)
			fprintf(log, "sent %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", message.number, message.sent_ns,
				now_ns());
	}
	close(sender);
}

int main(int count, char **arguments)
{
	(void)count;
	given = arguments;
	const char *path = option_text(arguments, "log", NULL);
	/* Appended to by both processes, in whole lines. */
	FILE *log = path ? fopen(path, "a") : NULL;
	if (log)
		setvbuf(log, NULL, _IOLBF, 0);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	receiver = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	if (bind(receiver, (struct sockaddr *)&address, length) ||
	    getsockname(receiver, (struct sockaddr *)&address, &length)) {
		perror("reactivity");
		return 1;
	}
	struct hogs hogs = start_hogs(arguments);
	pid_t client = fork();
	if (client == 0) {
		send_all(&address, log);
		return 0;
	}
	struct mn_options options = scheduler_options(arguments, 10000);
	mn_run(&options, run, log);
	stop_hogs(&hogs);
	waitpid(client, NULL, 0);
	return 0;
}
