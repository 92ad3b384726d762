// What waits for work of a queue, and for requests of io_uring.
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <termios.h>
#include <sys/prctl.h>

struct ring { int fd; unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask; struct io_uring_sqe *sqes; struct io_uring_cqe *cqes; };
static struct ring make(unsigned flags) {
	struct io_uring_params p = {.flags = flags};
	struct ring r;
	r.fd = syscall(__NR_io_uring_setup, 8, &p);
	if (r.fd < 0) { perror("io_uring_setup"); exit(1); }
	char *sq = mmap(0, p.sq_off.array + p.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r.fd, IORING_OFF_SQ_RING);
	char *cq = mmap(0, p.cq_off.cqes + p.cq_entries * 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r.fd, IORING_OFF_CQ_RING);
	r.sqes = mmap(0, p.sq_entries * 64, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, r.fd, IORING_OFF_SQES);
	r.cqes = (void *)(cq + p.cq_off.cqes);
	r.sq_tail = (unsigned *)(sq + p.sq_off.tail); r.sq_mask = (unsigned *)(sq + p.sq_off.ring_mask); r.sq_array = (unsigned *)(sq + p.sq_off.array);
	r.cq_head = (unsigned *)(cq + p.cq_off.head); r.cq_tail = (unsigned *)(cq + p.cq_off.tail); r.cq_mask = (unsigned *)(cq + p.cq_off.ring_mask);
	return r;
}
static void put(struct ring *r, struct io_uring_sqe sqe) {
	unsigned tail = *r->sq_tail, at = tail & *r->sq_mask;
	r->sqes[at] = sqe; r->sq_array[at] = at;
	__atomic_store_n(r->sq_tail, tail + 1, __ATOMIC_RELEASE);
}
static void enter(struct ring *r, unsigned submit, unsigned wait) {
	if (syscall(__NR_io_uring_enter, r->fd, submit, wait, wait ? IORING_ENTER_GETEVENTS : 0, 0, 0) < 0) perror("io_uring_enter");
}
static void take(struct ring *r, unsigned n) { __atomic_store_n(r->cq_head, *r->cq_head + n, __ATOMIC_RELEASE); }
static void nap(long ms) { struct timespec t = {0, ms * 1000000}; nanosleep(&t, 0); }
static void spin(long ms) {
	struct timespec a, b; clock_gettime(CLOCK_MONOTONIC, &a);
	do clock_gettime(CLOCK_MONOTONIC, &b); while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < ms * 1000000);
}
static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000LL + t.tv_nsec; }
static int master, slave;
static struct ring shared;
static struct __kernel_timespec twenty = {0, 20000000};
static void *writer(void *unused) {
	prctl(PR_SET_NAME, "writer");
	for (int i = 0; i < 10; i++) { nap(10); spin(10); if (write(master, "x\n", 2) < 0) perror("write"); nap(30); }
	return 0;
}
static void *feeder(void *unused) {
	prctl(PR_SET_NAME, "feeder");
	for (int i = 0; i < 10; i++) { nap(20); spin(10); int fd = open("fifo", O_WRONLY); if (fd < 0) perror("open"); nap(30); close(fd); }
	return 0;
}
static void *submitter(void *unused) {
	prctl(PR_SET_NAME, "submitter");
	for (int i = 0; i < 10; i++) {
		nap(5); spin(10);
		put(&shared, (struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT, .fd = -1, .addr = (uintptr_t)&twenty, .len = 1, .user_data = 3});
		enter(&shared, 1, 0); nap(45);
	}
	return 0;
}
int main(void) {
	pthread_t thread; char c[8];
	if (openpty(&master, &slave, 0, 0, 0) < 0) perror("openpty");
	struct termios raw; tcgetattr(slave, &raw); cfmakeraw(&raw); tcsetattr(slave, TCSANOW, &raw);
	unlink("fifo");
	if (mkfifo("fifo", 0600)) return 1;
	kill(getpid(), SIGSTOP);
	shared = make(0);
	struct ring own = make(0);
	prctl(PR_SET_NAME, "reader");
	pthread_create(&thread, 0, writer, 0);
	for (int i = 0; i < 10; i++) { int64_t b = now(); if (read(slave, c, 8) < 0) perror("read"); printf("pty,%d,%lld,%lld\n", gettid(), (long long)b, (long long)now()); nap(2); }
	pthread_join(thread, 0);
	// A worker thread opens a pipe, which blocks until the other end is opened.
	pthread_create(&thread, 0, feeder, 0);
	for (int i = 0; i < 10; i++) {
		int64_t b = now();
		put(&own, (struct io_uring_sqe){.opcode = IORING_OP_OPENAT, .flags = IOSQE_ASYNC, .fd = AT_FDCWD, .addr = (uintptr_t)"fifo", .open_flags = O_RDONLY, .user_data = 2});
		enter(&own, 1, 1); int fd = own.cqes[*own.cq_head & *own.cq_mask].res; take(&own, 1);
		printf("async,%d,%lld,%lld\n", gettid(), (long long)b, (long long)now()); nap(40); close(fd);
	}
	pthread_join(thread, 0);
	// Another thread submits a time-out.
	pthread_create(&thread, 0, submitter, 0);
	for (int i = 0; i < 10; i++) { int64_t b = now(); enter(&shared, 0, 1); take(&shared, 1); printf("timeout,%d,%lld,%lld\n", gettid(), (long long)b, (long long)now()); nap(2); }
	pthread_join(thread, 0);
	return 0;
}
