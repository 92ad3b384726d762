/* Two clients of a database: a journal that writes one line after the other, and an import that
 * sometimes writes many.
 *
 * A line of the journal is one statement; it is on the disk when the statement is done. The import, a
 * separate process, has a transaction open for 60 ms, four times a second. They share no tables and
 * no locks.
 *
 *     journal PORT TRUTH [LINES]
 *
 * writes to the file TRUTH, for each line, its number and whether the import had its transaction open
 * within it.
 */
#define _GNU_SOURCE
#define TB_OPTIONAL
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <tracebraid/probe.h>
#include <unistd.h>
#include "../../common/postgres.h"
#include "../../common/work.h"

TB_EVENT(journal, line_begin, TB_INT32(line));
TB_EVENT(journal, line_end, TB_INT32(line));

#define LINE_NS 10000000L
#define IMPORT_NS 250000000L
#define OPEN_NS 60000000L

static struct timespec start;
/* Number of begins and ends of imports; shared by both processes. */
static atomic_int *imported;

__attribute__((noinline)) static void write_line(int server)
{
	ask(server, "INSERT INTO journal VALUES ('order placed')");
}

__attribute__((noinline)) static void import(int server, long i)
{
	ask(server, "BEGIN");
	ask(server, "INSERT INTO imports SELECT generate_series(1, 10)");
	++*imported;
	sleep_until(&start, i * IMPORT_NS + OPEN_NS);
	++*imported;
	ask(server, "COMMIT");
}

static void importer(int port)
{
	prctl(PR_SET_NAME, "importer");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int server = connect_to(port);
	for (long i = 1;; i++) {
		sleep_until(&start, i * IMPORT_NS);
		import(server, i);
	}
}

int main(int argc, char **argv)
{
	int port = argc > 1 ? atoi(argv[1]) : 0;
	int lines = argc > 3 ? atoi(argv[3]) : 300;
	FILE *truth = argc > 2 ? fopen(argv[2], "w") : NULL;
	if (!truth || port < 1 || lines < 1) {
		fprintf(stderr, "usage: journal PORT TRUTH [LINES]\n");
		return 2;
	}
	fprintf(truth, "id,cause\n");
	fflush(truth);
	imported = mmap(NULL, sizeof *imported, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	pid_t other = fork();
	if (other == 0)
		importer(port);
	int server = connect_to(port);
	for (int line = 0; line < lines; line++) {
		sleep_until(&start, (line + 10) * LINE_NS);
		int before = *imported;
		tb_trace(journal, line_begin, line);
		write_line(server);
		tb_trace(journal, line_end, line);
		int within = before % 2 || *imported != before;
		fprintf(truth, "%d,%s\n", line, within ? "import" : "none");
	}
	kill(other, SIGTERM);
	waitpid(other, NULL, 0);
	return fclose(truth) != 0;
}
