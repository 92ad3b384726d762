/* Counts a program's calls of OpenCL by function, and its commands. */
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 96

static struct {
	const char *name;
	int count;
} counts[MOST];
static int commands;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;

static void count(const char *name, int new_commands)
{
	pthread_mutex_lock(&counting);
	commands += new_commands;
	for (int i = 0; i < MOST; i++) {
		if (!counts[i].name)
			counts[i].name = name;
		if (!strcmp(counts[i].name, name)) {
			counts[i].count++;
			pthread_mutex_unlock(&counting);
			return;
		}
	}
	abort();
}

#define CALL(function, ...) (count(#function, 0), function(__VA_ARGS__))
#define COMMAND(function, ...) (count(#function, 1), function(__VA_ARGS__))
#define CHECK(status) check(status, __LINE__)

static void check(cl_int status, int line)
{
	if (status) {
		fprintf(stderr, "line %d: error %d\n", line, status);
		exit(1);
	}
}

/* Appends the counts, so that several processes can use one file. */
static int write_counts(const char *path)
{
	FILE *file = fopen(path, "a");

	if (!file)
		return 1;
	for (int i = 0; i < MOST && counts[i].name; i++)
		fprintf(file, "%s %d\n", counts[i].name, counts[i].count);
	fprintf(file, "commands %d\n", commands);
	return fclose(file) != 0;
}
