/* The part of PostgreSQL's protocol (version 3) that queries need, so that the case studies need no
 * library. */
#ifndef CASE_STUDY_POSTGRES_H
#define CASE_STUDY_POSTGRES_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void postgres_failed(const char *what)
{
	fprintf(stderr, "postgres: %s\n", what);
	exit(1);
}

static void receive_all(int server, char *to, size_t size)
{
	while (size) {
		ssize_t got = recv(server, to, size, 0);
		if (got <= 0)
			postgres_failed("the server closed the connection");
		to += got;
		size -= got;
	}
}

/* Skips the messages of the server until it is ready for the next query. */
__attribute__((noinline)) static void await_answer(int server)
{
	char message[8192], type[5];
	do {
		uint32_t size;
		receive_all(server, type, 5);
		memcpy(&size, type + 1, 4);
		for (size = ntohl(size) - 4; size;) {
			size_t part = size < sizeof message ? size : sizeof message;
			receive_all(server, message, part);
			size -= part;
			if (type[0] == 'E') {
				fwrite(message, 1, part, stderr);
				postgres_failed("an error");
			}
		}
	} while (type[0] != 'Z');
}

static void send_all(int server, const char *bytes, size_t size)
{
	if (send(server, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
		postgres_failed("sending to the server failed");
}

/* Sends a query, and waits for the answer. */
__attribute__((noinline)) static void ask(int server, const char *sql)
{
	char message[1024] = "Q";
	uint32_t size = 4 + strlen(sql) + 1, network = htonl(size);
	if (size >= sizeof message)
		postgres_failed("the query is too long");
	memcpy(message + 1, &network, 4);
	memcpy(message + 5, sql, size - 4);
	send_all(server, message, size + 1);
	await_answer(server);
}

/* A connection to a server on this host that needs no password. */
static int connect_to(int port)
{
	static const char user[] = "user\0study\0database\0postgres\0";
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	uint32_t head[2] = { htonl(8 + sizeof user), htonl(3 << 16) };
	char message[8 + sizeof user];
	int one = 1, server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (server < 0 || connect(server, (struct sockaddr *)&address, sizeof address))
		postgres_failed("connecting failed");
	setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	memcpy(message, head, 8);
	memcpy(message + 8, user, sizeof user);
	send_all(server, message, sizeof message);
	await_answer(server);
	return server;
}

#endif
