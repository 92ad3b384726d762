/* Two clients of a database: a shop that takes orders, and a bookkeeper that computes a sum while it
 * holds a lock.
 *
 * An order is one statement. Every 150 ms the bookkeeper, a separate process, changes a row that
 * orders change, too, in a transaction. Then it asks for a sum that takes long and does not need
 * that row.
 *
 *     shop PORT TRUTH [ORDERS]
 *
 * writes to the file TRUTH, for each order, its number and whether the bookkeeper held the lock within
 * it.
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

TB_EVENT(shop, order_begin, TB_INT32(order));
TB_EVENT(shop, order_end, TB_INT32(order));

#define ORDER_NS 10000000L
#define BOOKS_NS 150000000L

static struct timespec start;
/* How often the bookkeeper took the lock or gave it back; of both processes. */
static atomic_int *taken;

__attribute__((noinline)) static void place_order(int server)
{
	ask(server, "UPDATE stock SET left_over = left_over - 1 WHERE item = 1");
}

__attribute__((noinline)) static void keep_books(int server)
{
	ask(server, "BEGIN");
	ask(server, "UPDATE stock SET booked = left_over WHERE item = 1");
	++*taken;
	ask(server, "SELECT sum(price) FROM sales WHERE note LIKE '%99%'");
	ask(server, "COMMIT");
	++*taken;
}

static void bookkeeper(int port)
{
	prctl(PR_SET_NAME, "bookkeeper");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int server = connect_to(port);
	for (long i = 1;; i++) {
		sleep_until(&start, i * BOOKS_NS);
		keep_books(server);
	}
}

int main(int argc, char **argv)
{
	int port = argc > 1 ? atoi(argv[1]) : 0;
	int orders = argc > 3 ? atoi(argv[3]) : 300;
	FILE *truth = argc > 2 ? fopen(argv[2], "w") : NULL;
	if (!truth || port < 1 || orders < 1) {
		fprintf(stderr, "usage: shop PORT TRUTH [ORDERS]\n");
		return 2;
	}
	fprintf(truth, "id,cause\n");
	fflush(truth);
	taken = mmap(NULL, sizeof *taken, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	pid_t other = fork();
	if (other == 0)
		bookkeeper(port);
	int server = connect_to(port);
	for (int order = 0; order < orders; order++) {
		sleep_until(&start, (order + 10) * ORDER_NS);
		int before = *taken;
		tb_trace(shop, order_begin, order);
		place_order(server);
		tb_trace(shop, order_end, order);
		int within = before % 2 || *taken != before;
		fprintf(truth, "%d,%s\n", order, within ? "lock" : "none");
	}
	kill(other, SIGTERM);
	waitpid(other, NULL, 0);
	return fclose(truth) != 0;
}
