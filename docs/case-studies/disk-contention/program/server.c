/* A server that reads requested blocks from the disk, and writes a log.
 *
 * A request reads some blocks, one after the other. Another thread of the server writes the log and
 * calls fsync, every 120 ms. O_DIRECT stands for files that are larger than the memory.
 *
 *     server DIRECTORY TRUTH [REQUESTS]
 *
 * writes to the file TRUTH, for each request, its number and whether the log was written to the disk
 * within it.
 */
#define _GNU_SOURCE
#define TB_OPTIONAL
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tracebraid/probe.h>
#include <unistd.h>
#include "../../common/work.h"

TB_EVENT(server, request_begin, TB_INT32(request));
TB_EVENT(server, request_end, TB_INT32(request));

#define BLOCK (64 << 10)
#define BLOCKS 512
/* Blocks that a request reads. */
#define READS 1
#define REQUEST_NS 8000000L
#define LOG_NS 120000000L
/* Wanted time of the disk for a log: disks differ. */
#define FLUSH_NS 45000000L
#define LEAST_LOG_BYTES (1 << 20)
#define MOST_LOG_BYTES (20 << 20)

static struct timespec start;
static atomic_int done;
/* Number of begins and ends of writing the log to the disk. */
static atomic_int synced;
static int data, log_file;
static int64_t log_bytes = 2 << 20;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

__attribute__((noinline)) static void read_block(char *block)
{
	off_t at = (off_t)(rand() % BLOCKS) * BLOCK;
	if (pread(data, block, BLOCK, at) != BLOCK)
		fail("server: reading");
}

__attribute__((noinline)) static void handle_request(char *block)
{
	for (int i = 0; i < READS; i++)
		read_block(block);
	burn(0.1);
}

/* Disks differ, and vary in speed: chooses the size of the next log by the time of this one, between
 * half and twice its size. */
static void size_log(int64_t took)
{
	int64_t wanted = log_bytes * FLUSH_NS / (took > 0 ? took : 1);

	wanted = wanted < 2 * log_bytes ? wanted : 2 * log_bytes;
	wanted = wanted > log_bytes / 2 ? wanted : log_bytes / 2;
	wanted = wanted > LEAST_LOG_BYTES ? wanted : LEAST_LOG_BYTES;
	log_bytes = wanted < MOST_LOG_BYTES ? wanted : MOST_LOG_BYTES;
}

__attribute__((noinline)) static void flush_log(void)
{
	static char text[1 << 18];

	/* The log is overwritten: it must not fill the disk. */
	if (lseek(log_file, 0, SEEK_SET))
		fail("server: log");
	/* Formatting the log takes time, too. */
	burn(3.0);
	memset(text, 'l', sizeof text);
	int64_t begin = nanoseconds(CLOCK_MONOTONIC);
	for (int64_t bytes = 0; bytes < log_bytes; bytes += sizeof text)
		if (write(log_file, text, sizeof text) != sizeof text)
			fail("server: log");
	synced++;
	if (fsync(log_file))
		fail("server: log");
	synced++;
	size_log(nanoseconds(CLOCK_MONOTONIC) - begin);
}

static void *write_log(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "logger");
	for (long i = 1; !done; i++) {
		sleep_until(&start, i * LOG_NS);
		flush_log();
	}
	return NULL;
}

/* Writes the blocks that requests read. */
static void make_data(const char *path)
{
	static char block[BLOCK];
	int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (file < 0)
		fail(path);
	for (int i = 0; i < BLOCKS; i++) {
		memset(block, i, BLOCK);
		if (write(file, block, BLOCK) != BLOCK)
			fail(path);
	}
	if (fsync(file) || close(file))
		fail(path);
	data = open(path, O_RDONLY | O_DIRECT);
	if (data < 0)
		fail(path);
}

int main(int argc, char **argv)
{
	int requests = argc > 3 ? atoi(argv[3]) : 400;
	FILE *truth = argc > 2 ? fopen(argv[2], "w") : NULL;
	char path[4096];
	void *block;
	pthread_t logger;
	long longest = 0;
	if (!truth || requests < 1) {
		fprintf(stderr, "usage: server DIRECTORY TRUTH [REQUESTS]\n");
		return 2;
	}
	fprintf(truth, "id,cause\n");
	snprintf(path, sizeof path, "%s/data", argv[1]);
	make_data(path);
	snprintf(path, sizeof path, "%s/log", argv[1]);
	log_file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (log_file < 0 || posix_memalign(&block, 4096, BLOCK))
		fail(path);
	calibrate();
	for (int i = 0; i < 5; i++)
		flush_log();
	clock_gettime(CLOCK_MONOTONIC, &start);
	pthread_create(&logger, NULL, write_log, NULL);
	go_before(1);
	for (int request = 0; request < requests; request++) {
		sleep_until(&start, request * REQUEST_NS);
		int before = synced;
		tb_trace(server, request_begin, request);
		struct timespec begin, end;
		clock_gettime(CLOCK_MONOTONIC, &begin);
		handle_request(block);
		clock_gettime(CLOCK_MONOTONIC, &end);
		tb_trace(server, request_end, request);
		long us = (end.tv_sec - begin.tv_sec) * 1000000 + (end.tv_nsec - begin.tv_nsec) / 1000;
		if (us > longest)
			longest = us;
		/* Odd: the log is being written. */
		int within = before % 2 || synced != before;
		fprintf(truth, "%d,%s\n", request, within ? "fsync" : "none");
	}
	done = 1;
	pthread_join(logger, NULL);
	fprintf(truth, "longest_us %ld\n", longest);
	return fclose(truth) != 0;
}
