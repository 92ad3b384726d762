/* Calls OpenCL with and without events, profiling and blocking, and prints the results.
 *
 *     calls COUNTS
 *
 * Standard output has what the program computed and what its queries returned: it must not depend
 * on whether the program is recorded. The file COUNTS gets the number of its calls of each function, and of its commands.
 */
#include "counted.h"

#define ITEMS 4096

static const char *source =
	"kernel void fill(global int *to, int value) { to[get_global_id(0)] = value; }\n"
	"kernel void add(global int *to, global const int *from)"
	" { size_t i = get_global_id(0); to[i] += from[i] + (int)i; }\n";

static cl_device_id device;
static cl_context context;
static cl_kernel fill, add;
static cl_mem one, other;

static void print_queue(const char *name, cl_command_queue queue)
{
	cl_command_queue_properties properties = 0;
	cl_ulong list[16] = {0};
	size_t bytes = 99;
	cl_int status;

	CHECK(CALL(clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL));
	printf("%s: properties %llu", name, (unsigned long long)properties);
	status = CALL(clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES_ARRAY, 0, NULL, &bytes);
	printf(", array: status %d, %zu bytes:", status, status ? 0 : bytes);
	if (!status && bytes && bytes <= sizeof list) {
		CHECK(CALL(clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES_ARRAY, bytes, list, NULL));
		for (size_t i = 0; i < bytes / 8; i++)
			printf(" %llx", (unsigned long long)list[i]);
	}
	printf("\n");
}

static void print_event(const char *name, cl_event event)
{
	cl_ulong time = 0;
	cl_int status = CALL(clGetEventProfilingInfo, event, CL_PROFILING_COMMAND_START, sizeof time, &time, NULL);

	printf("%s: profiling: status %d, time %s\n", name, status, time ? "known" : "0");
}

/* The number of references is only certain while the command waits. */
static void print_waiting(cl_event event)
{
	cl_uint references = 0;

	CHECK(CALL(clGetEventInfo, event, CL_EVENT_REFERENCE_COUNT, sizeof references, &references, NULL));
	printf("waiting: %u references\n", references);
}

static void compute(const char *name, cl_command_queue queue)
{
	int *values = malloc(ITEMS * sizeof *values), *mapped;
	size_t items = ITEMS, group = 64;
	size_t origin[3] = {0}, region[3] = {256, 4, 1};
	cl_event filled, copied, added, user;
	cl_int status, value = 7;
	long sum = 0;

	/* Blocking, with and without an event. */
	for (int i = 0; i < ITEMS; i++)
		values[i] = i;
	CHECK(COMMAND(clEnqueueWriteBuffer, queue, one, CL_TRUE, 0, ITEMS * sizeof *values, values, 0, NULL, NULL));
	CHECK(COMMAND(clEnqueueWriteBuffer, queue, other, CL_TRUE, 0, ITEMS * sizeof *values, values, 0, NULL, &copied));
	print_event("blocking write", copied);
	CHECK(CALL(clReleaseEvent, copied));
	/* An event that another command waits for. */
	CHECK(CALL(clSetKernelArg, fill, 0, sizeof one, &one));
	CHECK(CALL(clSetKernelArg, fill, 1, sizeof value, &value));
	CHECK(COMMAND(clEnqueueNDRangeKernel, queue, fill, 1, NULL, &items, &group, 0, NULL, &filled));
	CHECK(CALL(clSetKernelArg, add, 0, sizeof one, &one));
	CHECK(CALL(clSetKernelArg, add, 1, sizeof other, &other));
	CHECK(COMMAND(clEnqueueNDRangeKernel, queue, add, 1, NULL, &items, NULL, 1, &filled, &added));
	/* Released before it is complete. */
	CHECK(CALL(clReleaseEvent, filled));
	/* Without an event. */
	CHECK(COMMAND(clEnqueueNDRangeKernel, queue, add, 1, NULL, &items, &group, 0, NULL, NULL));
	CHECK(CALL(clFlush, queue));
	CHECK(CALL(clWaitForEvents, 1, &added));
	CHECK(CALL(clFinish, queue));
	print_event("kernel", added);
	CHECK(CALL(clReleaseEvent, added));
	/* Parts of buffers, not blocking. */
	CHECK(COMMAND(clEnqueueReadBufferRect, queue, one, CL_FALSE, origin, origin, region, 0, 0, 0, 0, values, 0, NULL, NULL));
	CHECK(COMMAND(clEnqueueCopyBuffer, queue, one, other, 0, 0, ITEMS * sizeof *values, 0, NULL, NULL));
	CHECK(COMMAND(clEnqueueFillBuffer, queue, other, &value, sizeof value, 0, 64 * sizeof value, 0, NULL, NULL));
	mapped = COMMAND(clEnqueueMapBuffer, queue, other, CL_TRUE, CL_MAP_READ, 0, ITEMS * sizeof *values, 0, NULL, NULL, &status);
	CHECK(status);
	for (int i = 0; i < ITEMS; i++)
		sum += mapped[i];
	CHECK(COMMAND(clEnqueueUnmapMemObject, queue, other, mapped, 0, NULL, NULL));
	/* A command that waits for the program. */
	user = CALL(clCreateUserEvent, context, &status);
	CHECK(status);
	CHECK(COMMAND(clEnqueueMarkerWithWaitList, queue, 1, &user, &filled));
	print_waiting(filled);
	CHECK(CALL(clReleaseEvent, filled));
	CHECK(COMMAND(clEnqueueMarkerWithWaitList, queue, 1, &user, NULL));
	CHECK(COMMAND(clEnqueueBarrierWithWaitList, queue, 0, NULL, NULL));
	CHECK(CALL(clSetUserEventStatus, user, CL_COMPLETE));
	CHECK(CALL(clReleaseEvent, user));
	CHECK(CALL(clFinish, queue));
	/* Failures: no dimensions, a wrong size. */
	status = CALL(clEnqueueNDRangeKernel, queue, add, 0, NULL, &items, NULL, 0, NULL, NULL);
	printf("%s: no dimensions: status %d\n", name, status);
	status = CALL(clEnqueueReadBuffer, queue, one, CL_TRUE, 0, ITEMS * 8, values, 0, NULL, &copied);
	printf("%s: too much: status %d\n", name, status);
	printf("%s: sum %ld, first %d\n", name, sum, values[1]);
	free(values);
}

int main(int argc, char **argv)
{
	cl_platform_id platform;
	cl_command_queue queue;
	cl_uint number;
	cl_int status;
	cl_kernel clone;
	cl_program program;
	cl_queue_properties out_of_order[] = {
		CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0 };
	cl_queue_properties profiled[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0 };

	if (argc < 2)
		return 2;
	CHECK(CALL(clGetPlatformIDs, 1, &platform, &number));
	CHECK(CALL(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = CALL(clCreateContext, NULL, 1, &device, NULL, NULL, &status);
	CHECK(status);
	program = CALL(clCreateProgramWithSource, context, 1, &source, NULL, &status);
	CHECK(status);
	CHECK(CALL(clBuildProgram, program, 1, &device, "", NULL, NULL));
	fill = CALL(clCreateKernel, program, "fill", &status);
	CHECK(status);
	add = CALL(clCreateKernel, program, "add", &status);
	CHECK(status);
	one = CALL(clCreateBuffer, context, CL_MEM_READ_WRITE, ITEMS * sizeof(int), NULL, &status);
	CHECK(status);
	other = CALL(clCreateBuffer, context, CL_MEM_READ_WRITE, ITEMS * sizeof(int), NULL, &status);
	CHECK(status);

	queue = CALL(clCreateCommandQueue, context, device, 0, &status);
	CHECK(status);
	print_queue("plain", queue);
	compute("plain", queue);
	CHECK(CALL(clReleaseCommandQueue, queue));
	queue = CALL(clCreateCommandQueueWithProperties, context, device, out_of_order, &status);
	printf("out of order: status %d\n", status);
	if (!status) {
		print_queue("out of order", queue);
		CHECK(CALL(clReleaseCommandQueue, queue));
	}
	queue = CALL(clCreateCommandQueueWithProperties, context, device, NULL, &status);
	CHECK(status);
	print_queue("without properties", queue);
	compute("without properties", queue);
	CHECK(CALL(clReleaseCommandQueue, queue));
	queue = CALL(clCreateCommandQueueWithProperties, context, device, profiled, &status);
	CHECK(status);
	print_queue("profiled", queue);
	compute("profiled", queue);
	CHECK(CALL(clReleaseCommandQueue, queue));
	clone = CALL(clCloneKernel, add, &status);
	printf("clone: status %d\n", status);
	if (!status)
		CHECK(CALL(clReleaseKernel, clone));
	/* A function by its name. */
	void *by_name = CALL(clGetExtensionFunctionAddressForPlatform, platform, "clNoSuchFunctionKHR");
	printf("unknown function: %s\n", by_name ? "found" : "absent");

	CHECK(CALL(clReleaseKernel, fill));
	CHECK(CALL(clReleaseKernel, add));
	CHECK(CALL(clReleaseMemObject, one));
	CHECK(CALL(clReleaseMemObject, other));
	CHECK(CALL(clReleaseProgram, program));
	CHECK(CALL(clReleaseContext, context));
	return write_counts(argv[1]);
}
