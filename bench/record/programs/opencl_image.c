/* Time of an iteration that makes an image with a small kernel: 14 synchronous calls and 2 commands.
 *
 *     opencl_image SAMPLES ITERATIONS WIDTH HEIGHT
 *
 * Prints the nanoseconds of an iteration in each sample. (D. Couturier, M. Dagenais: LTTng CLUST,
 * 2015, tables 4 and 5, whose program is not published.)
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <stdio.h>
#include <stdlib.h>

#include "rounds.h"

static const char *source =
	"kernel void shade(global uint *to, uint width, uint seed)"
	" { size_t x = get_global_id(0), y = get_global_id(1); to[y * width + x] = (uint)(x ^ y) + seed; }";

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;

static void must(cl_int status)
{
	if (status) {
		fprintf(stderr, "opencl_image: error %d\n", status);
		exit(1);
	}
}

static void iterate(cl_uint width, cl_uint height, cl_uint seed, cl_uint *image)
{
	size_t bytes = (size_t)width * height * sizeof *image, found, items[2] = { width, height };
	cl_command_queue_properties properties;
	cl_uint number;
	cl_int status;
	cl_mem buffer;

	must(clGetPlatformIDs(1, &platform, &number));
	must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	must(clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof number, &number, NULL));
	must(clGetContextInfo(context, CL_CONTEXT_NUM_DEVICES, sizeof number, &number, NULL));
	must(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL));
	must(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof found, &found, NULL));
	buffer = clCreateBuffer(context, CL_MEM_WRITE_ONLY, bytes, NULL, &status);
	must(status);
	must(clGetMemObjectInfo(buffer, CL_MEM_SIZE, sizeof found, &found, NULL));
	must(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
	must(clSetKernelArg(kernel, 1, sizeof width, &width));
	must(clSetKernelArg(kernel, 2, sizeof seed, &seed));
	must(clEnqueueNDRangeKernel(queue, kernel, 2, NULL, items, NULL, 0, NULL, NULL));
	must(clEnqueueReadBuffer(queue, buffer, CL_FALSE, 0, bytes, image, 0, NULL, NULL));
	must(clFlush(queue));
	must(clFinish(queue));
	must(clReleaseMemObject(buffer));
	if (image[0] != seed)
		must(CL_INVALID_VALUE);
}

int main(int argc, char **argv)
{
	int samples = argc == 5 ? atoi(argv[1]) : 0, iterations = argc == 5 ? atoi(argv[2]) : 0;
	cl_uint width = argc == 5 ? atoi(argv[3]) : 0, height = argc == 5 ? atoi(argv[4]) : 0;
	cl_uint *image = malloc((size_t)width * height * sizeof *image);
	cl_program program;
	cl_int status;

	if (samples < 1 || iterations < 1 || !width || !height || !image) {
		fprintf(stderr, "usage: opencl_image SAMPLES ITERATIONS WIDTH HEIGHT\n");
		return 2;
	}
	must(clGetPlatformIDs(1, &platform, NULL));
	must(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = clCreateContext(NULL, 1, &device, NULL, NULL, &status);
	must(status);
	queue = clCreateCommandQueueWithProperties(context, device, NULL, &status);
	must(status);
	program = clCreateProgramWithSource(context, 1, &source, NULL, &status);
	must(status);
	must(clBuildProgram(program, 1, &device, "", NULL, NULL));
	kernel = clCreateKernel(program, "shade", &status);
	must(status);
	/* Compiles the kernel for this size. */
	iterate(width, height, 1, image);
	for (int sample = 0; sample < samples; sample++) {
		double begin = now();

		for (int iteration = 0; iteration < iterations; iteration++)
			iterate(width, height, sample + 2, image);
		printf("%.2f\n", (now() - begin) / iterations);
	}
	return 0;
}
