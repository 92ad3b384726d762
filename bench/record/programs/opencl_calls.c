/* Time of OpenCL calls: of a call that enqueues nothing, and of a blocking transfer.
 *
 *     opencl_calls SAMPLES CALLS [BYTES]
 *
 * Prints the nanoseconds of a call in each sample: of clGetPlatformIDs, or with BYTES of
 * clEnqueueReadBuffer. (D. Couturier, M. Dagenais: LTTng CLUST, 2015, tables 2 and 3.)
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

#include "rounds.h"

static void must(cl_int status)
{
	if (status) {
		fprintf(stderr, "opencl_calls: error %d\n", status);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int samples = argc > 2 ? atoi(argv[1]) : 0, calls = argc > 2 ? atoi(argv[2]) : 0;
	size_t bytes = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_mem buffer;
	cl_int status;
	char *to = malloc(bytes + 1);

	if (samples < 1 || calls < 1 || !to) {
		fprintf(stderr, "usage: opencl_calls SAMPLES CALLS [BYTES]\n");
		return 2;
	}
	must(clGetPlatformIDs(1, &platform, NULL));
	must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
	must(status);
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
	must(status);
	buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, bytes + 1, NULL, &status);
	must(status);
	for (int sample = 0; sample < samples; sample++) {
		double begin = now();

		for (int call = 0; call < calls; call++)
			if (bytes)
				must(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, bytes, to, 0, NULL, NULL));
			else
				must(clGetPlatformIDs(1, &platform, NULL));
		printf("%.2f\n", (now() - begin) / calls);
	}
	return 0;
}
