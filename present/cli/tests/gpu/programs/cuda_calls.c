/* Calls the stand-ins for CUDA (stand_in_cuda.c), and prints the results.
 *
 *     cuda_calls COUNTS [fork | kill | exit-within]
 *
 * The file COUNTS gets the number of calls of each function, and of commands.
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct dim3 { unsigned x, y, z; };
int cuInit(unsigned);
int cuCtxCreate_v2(void **, unsigned, int);
int cuStreamCreate(void **, unsigned);
int cuMemAlloc_v2(uint64_t *, size_t);
int cuModuleGetFunction(void **, void *, const char *);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
		   void **);
int cuMemcpyHtoDAsync_v2(uint64_t, const void *, size_t, void *);
int cuMemcpyDtoH_v2(void *, uint64_t, size_t);
int cuMemsetD8_v2(uint64_t, unsigned char, size_t);
int cuStreamSynchronize(void *);
int cuLaunchHostFunc(void *, void (*)(void *), void *);
int cuStandIn(void);
int cudaLaunchKernel(const void *, struct dim3, struct dim3, void **, size_t, void *);

#define MOST 64
static struct {
	const char *name;
	int count;
} counts[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void count(const char *name)
{
	pthread_mutex_lock(&lock);
	int i = 0;
	while (counts[i].name && strcmp(counts[i].name, name))
		i++;
	counts[i].name = name;
	counts[i].count++;
	pthread_mutex_unlock(&lock);
}

#define CALL(function, ...) (count(#function), function(__VA_ARGS__))

static void *stream;
static uint64_t memory;

static void *launch(void *kernel)
{
	struct dim3 grid = { 4, 2, 1 }, block = { 32, 1, 1 };
	for (int i = 0; i < 50; i++) {
		count("kernels");
		CALL(cuLaunchKernel, kernel, 8, 1, 1, 64, 1, 1, 0, stream, 0, 0);
		count("kernels");
		/* Calls the driver. */
		count("cuLaunchKernel");
		CALL(cudaLaunchKernel, kernel, grid, block, 0, 16, stream);
	}
	return 0;
}

static void leave(void *data)
{
	(void)data;
	exit(3);
}

static void write_counts(const char *path)
{
	FILE *file = fopen(path, "w");
	for (int i = 0; counts[i].name; i++)
		fprintf(file, "%s %d\n", counts[i].name, counts[i].count);
	fclose(file);
}

int main(int count_of, char **arguments)
{
	const char *how = count_of > 2 ? arguments[2] : "";
	void *context, *kernel, *other;
	pthread_t thread;
	static char host[4096];

	CALL(cuInit, 0);
	CALL(cuCtxCreate_v2, &context, 0, 0);
	CALL(cuStreamCreate, &stream, 1);
	printf("alloc %d\n", CALL(cuMemAlloc_v2, &memory, sizeof host));
	printf("too much %d\n", CALL(cuMemAlloc_v2, &memory, (size_t)1 << 50));
	CALL(cuModuleGetFunction, &kernel, (void *)0x3000, "fill");
	CALL(cuModuleGetFunction, &other, (void *)0x3000, "add(int*, int const*)");
	pthread_create(&thread, 0, launch, other);
	launch(kernel);
	pthread_join(thread, 0);
	for (int i = 0; i < 10; i++) {
		count("copies");
		CALL(cuMemcpyHtoDAsync_v2, memory, host, sizeof host, stream);
		count("copies");
		CALL(cuMemcpyDtoH_v2, host, memory, 1000);
	}
	CALL(cuMemsetD8_v2, memory, 7, 512);
	CALL(cuStreamSynchronize, stream);
	CALL(cuStandIn);
	if (!strcmp(how, "fork") && !fork()) {
		cuStreamSynchronize(stream);
		return 0;
	}
	if (!strcmp(how, "fork"))
		wait(0);
	write_counts(arguments[1]);
	puts("done");
	fflush(stdout);
	if (!strcmp(how, "kill")) {
		/* Longer than the period of the recorder's thread. */
		usleep(400000);
		kill(getpid(), SIGKILL);
	}
	if (!strcmp(how, "exit-within"))
		cuLaunchHostFunc(stream, leave, 0);
	return 0;
}
