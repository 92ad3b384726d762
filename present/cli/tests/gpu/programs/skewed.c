/* Enqueues commands for some time. Prints simultaneous times of the clock of PoCL's devices and of
 * that of traces: CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC, the largest error.
 *
 *     skewed COUNTS
 */
#include "counted.h"
#include <time.h>
#include <unistd.h>

static long long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ll + time.tv_nsec;
}

static void print_clocks(void)
{
	long long raw = 0, monotonic = 0, least = 1ll << 62;

	for (int i = 0; i < 100; i++) {
		long long before = now(CLOCK_MONOTONIC_RAW);
		long long at = now(CLOCK_MONOTONIC);
		long long after = now(CLOCK_MONOTONIC_RAW);

		if (after - before < least) {
			least = after - before;
			raw = before + least / 2;
			monotonic = at;
		}
	}
	printf("clocks %lld %lld %lld\n", raw, monotonic, least);
}

int main(int argc, char **argv)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_int status;
	int zero = 0;

	(void)argc;
	CHECK(CALL(clGetPlatformIDs, 1, &platform, NULL));
	CHECK(CALL(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	cl_context context = CALL(clCreateContext, NULL, 1, &device, NULL, NULL, &status);
	cl_command_queue queue = CALL(clCreateCommandQueue, context, device, 0, &status);
	cl_mem buffer = CALL(clCreateBuffer, context, CL_MEM_READ_WRITE, 4096, NULL, &status);
	CHECK(status);
	print_clocks();
	for (int i = 0; i < 100; i++) {
		CHECK(COMMAND(clEnqueueFillBuffer, queue, buffer, &zero, sizeof zero, 0, 4096, 0, NULL, NULL));
		CHECK(CALL(clFinish, queue));
		usleep(500);
	}
	print_clocks();
	return write_counts(argv[1]);
}
