/* One buffer, handed from thread to thread. Each letter of the argument is one thread, run in order:
 *   o  leaves three records open, and ends
 *   O  like o, by a thread that the kernel does not watch
 *   f  writes one record
 *   F  writes enough records to overwrite a ring many times
 *   s  writes the record with the next number
 *   n  writes one record, not watched
 *   N  writes many records, not watched
 *   e  starts again with the first letter, until the program is killed
 * Open records are finished at the end. Prints the number of records. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tracebraid/probe.h>

TB_EVENT(test, numbered, TB_UINT64(n), TB_UINT64(check));
/* Of another size, so that overlapping another record would be detected. */
TB_EVENT(test, open, TB_UINT64(n), TB_UINT64(check), TB_UINT64(again));

#define MOST_OPEN 64
#define MANY 20000

static void *open_records[MOST_OPEN];
static size_t count;

static uint64_t check_of(uint64_t n)
{
	return n * 0x9E3779B97F4A7C15u + 1;
}

static void write_records(uint64_t how_many)
{
	for (uint64_t n = 0; n < how_many; n++)
		tb_trace(test, numbered, n, check_of(n));
}

static void write_next(void)
{
	static uint64_t next;
	tb_trace(test, numbered, next, check_of(next));
	next++;
}

static void leave_open(void)
{
	for (int i = 0; i < 3 && count < MOST_OPEN; i++) {
		write_records(20);
		open_records[count++] = tb_reserve(&tb_class_test_open, 24);
	}
}

/* Unregisters the thread's restartable sequences, which the C library has registered with the
 * kernel. */
static int leave_unwatched(void)
{
	extern __attribute__((weak)) const ptrdiff_t __rseq_offset;
	char *area = (char *)__builtin_thread_pointer() + __rseq_offset;
	return &__rseq_offset == NULL || syscall(SYS_rseq, area, 32, 1, 0x53053053) == 0;
}

static void *run(void *letter)
{
	char what = *(const char *)letter;
	if (strchr("OnN", what) && !leave_unwatched())
		return letter;
	if (what == 'o' || what == 'O')
		leave_open();
	else if (what == 's')
		write_next();
	else
		write_records(what == 'f' || what == 'n' ? 1 : MANY);
	return NULL;
}

int main(int argc, char **argv)
{
	/* This thread writes no record earlier, so that there is one buffer. */
	for (char *letter = argv[argc - 1]; *letter; letter++) {
		if (*letter == 'e')
			letter = argv[argc - 1];
		pthread_t thread;
		void *failed;
		pthread_create(&thread, NULL, run, letter);
		pthread_join(thread, &failed);
		if (failed)
			return 1;
	}
	for (uint64_t n = 0; n < count; n++) {
		uint64_t fields[] = { n, check_of(n), n };
		if (!open_records[n])
			return 2;
		memcpy(open_records[n], fields, sizeof(fields));
		tb_commit(&tb_class_test_open, open_records[n]);
	}
	printf("%zu\n", count);
	return 0;
}
