/* Rare functions of OpenCL: sub-devices, commands that wait for the program, functions by name,
 * calls that fail.
 *
 *     rare COUNTS
 *
 * Standard output must not depend on whether the program is recorded.
 */
#include "counted.h"
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>

#define FIND(function) (function = CALL(clGetExtensionFunctionAddressForPlatform, platform, #function))

static cl_platform_id platform;
static cl_device_id device;
static cl_context context;

static void sub_devices(const char *name, const cl_device_partition_property *properties)
{
	cl_device_id parts[8];
	cl_uint number = 0;
	cl_int status = CALL(clCreateSubDevices, device, properties, 8, parts, &number);

	printf("%s: status %d, %u devices\n", name, status, status ? 0 : number);
	if (status)
		return;
	cl_context of_parts = CALL(clCreateContext, NULL, number, parts, NULL, NULL, &status);
	CHECK(status);
	for (cl_uint i = 0; i < number; i++) {
		cl_command_queue queue = CALL(clCreateCommandQueue, of_parts, parts[i], 0, &status);

		CHECK(status);
		CHECK(COMMAND(clEnqueueMarkerWithWaitList, queue, 0, NULL, NULL));
		CHECK(CALL(clFinish, queue));
		CHECK(CALL(clReleaseCommandQueue, queue));
	}
	/* The devices stay: PoCL 3.1 may still use those of complete commands. */
}

/* An event of the program orders commands of an out-of-order queue. */
static void order(void)
{
	cl_queue_properties out_of_order[] = { CL_QUEUE_PROPERTIES, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0 };
	cl_command_queue_properties seen;
	cl_event user, first, second;
	cl_int status, one = 1, two = 2, read = 0, state;
	cl_command_queue queue = CALL(clCreateCommandQueueWithProperties, context, device, out_of_order, &status);

	CHECK(status);
	cl_mem buffer = CALL(clCreateBuffer, context, CL_MEM_READ_WRITE, sizeof one, NULL, &status);
	CHECK(status);
	user = CALL(clCreateUserEvent, context, &status);
	CHECK(status);
	CHECK(COMMAND(clEnqueueWriteBuffer, queue, buffer, CL_FALSE, 0, sizeof one, &one, 1, &user, &first));
	CHECK(COMMAND(clEnqueueWriteBuffer, queue, buffer, CL_FALSE, 0, sizeof two, &two, 1, &first, &second));
	CHECK(CALL(clGetEventInfo, first, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
	printf("waits: %s\n", state > CL_COMPLETE ? "yes" : "no");
	status = CALL(clGetEventProfilingInfo, user, CL_PROFILING_COMMAND_END, 8, &(cl_ulong){0}, NULL);
	printf("profiling of a user event: status %d\n", status);
	CHECK(CALL(clSetUserEventStatus, user, CL_COMPLETE));
	CHECK(COMMAND(clEnqueueReadBuffer, queue, buffer, CL_TRUE, 0, sizeof read, &read, 1, &second, NULL));
	printf("read: %d\n", read);
	CHECK(CALL(clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES, sizeof seen, &seen, NULL));
	printf("properties: %llu\n", (unsigned long long)seen);
	CHECK(CALL(clReleaseEvent, first));
	CHECK(CALL(clReleaseEvent, second));
	CHECK(CALL(clReleaseEvent, user));
	CHECK(CALL(clReleaseMemObject, buffer));
	CHECK(CALL(clFinish, queue));
	CHECK(CALL(clReleaseCommandQueue, queue));
}

/* A command buffer, whose functions have names only. */
static void by_name(void)
{
	clCreateCommandBufferKHR_fn clCreateCommandBufferKHR;
	clCommandFillBufferKHR_fn clCommandFillBufferKHR;
	clFinalizeCommandBufferKHR_fn clFinalizeCommandBufferKHR;
	clEnqueueCommandBufferKHR_fn clEnqueueCommandBufferKHR;
	clReleaseCommandBufferKHR_fn clReleaseCommandBufferKHR;
	cl_int status, seven = 7, read = 0;
	cl_event event;
	cl_command_queue queue = CALL(clCreateCommandQueueWithProperties, context, device, NULL, &status);

	CHECK(status);
	if (!FIND(clCreateCommandBufferKHR) || !FIND(clCommandFillBufferKHR) || !FIND(clFinalizeCommandBufferKHR)
	    || !FIND(clEnqueueCommandBufferKHR) || !FIND(clReleaseCommandBufferKHR)) {
		printf("no command buffers\n");
		CHECK(CALL(clReleaseCommandQueue, queue));
		return;
	}
	cl_mem buffer = CALL(clCreateBuffer, context, CL_MEM_READ_WRITE, sizeof seven, NULL, &status);
	CHECK(status);
	cl_command_buffer_khr list = CALL(clCreateCommandBufferKHR, 1, &queue, NULL, &status);
	CHECK(status);
	CHECK(CALL(clCommandFillBufferKHR, list, NULL, buffer, &seven, sizeof seven, 0, sizeof seven, 0, NULL, NULL, NULL));
	CHECK(CALL(clFinalizeCommandBufferKHR, list));
	/* With an event and without. */
	CHECK(COMMAND(clEnqueueCommandBufferKHR, 0, NULL, list, 0, NULL, &event));
	CHECK(CALL(clWaitForEvents, 1, &event));
	CHECK(CALL(clReleaseEvent, event));
	CHECK(COMMAND(clEnqueueCommandBufferKHR, 0, NULL, list, 0, NULL, NULL));
	CHECK(CALL(clFinish, queue));
	CHECK(COMMAND(clEnqueueReadBuffer, queue, buffer, CL_TRUE, 0, sizeof read, &read, 0, NULL, NULL));
	printf("filled by name: %d\n", read);
	CHECK(CALL(clReleaseCommandBufferKHR, list));
	CHECK(CALL(clReleaseMemObject, buffer));
	CHECK(CALL(clReleaseCommandQueue, queue));
}

/* A function that the loader itself has: its call must be recorded once. */
static void of_loader(void)
{
	cl_context_properties properties[] = { CL_CONTEXT_PLATFORM, (cl_context_properties)platform, 0 };
	clGetGLContextInfoKHR_fn clGetGLContextInfoKHR;
	size_t bytes = 0;
	cl_int status;

	if (!FIND(clGetGLContextInfoKHR)) {
		printf("no function of OpenGL\n");
		return;
	}
	status = CALL(clGetGLContextInfoKHR, properties, CL_DEVICES_FOR_GL_CONTEXT_KHR, 0, NULL, &bytes);
	printf("OpenGL: status %d\n", status);
}

static void failures(void)
{
	cl_int status, unset = 9;
	cl_device_id devices[2];
	size_t sizes[3] = { 1, 1, 1 };
	const char *text = "kernel void nothing(void) { }";
	cl_command_queue queue = CALL(clCreateCommandQueue, context, device, 0, &status);

	CHECK(status);
	cl_program program = CALL(clCreateProgramWithSource, context, 1, &text, NULL, &status);
	CHECK(status);
	CHECK(CALL(clBuildProgram, program, 0, NULL, NULL, NULL, NULL));
	cl_kernel kernel = CALL(clCreateKernel, program, "nothing", &status);
	CHECK(status);
	cl_kernel absent = CALL(clCreateKernel, program, "absent", &unset);
	printf("absent kernel: %d, %s\n", unset, absent ? "some" : "none");
	absent = CALL(clCreateKernel, program, NULL, &unset);
	printf("kernel without a name: %d, %s\n", unset, absent ? "some" : "none");
	/* More dimensions than the arrays have. */
	status = CALL(clEnqueueNDRangeKernel, queue, kernel, 1 << 30, NULL, sizes, NULL, 0, NULL, NULL);
	printf("dimensions: %d\n", status);
	status = CALL(clEnqueueMarker, queue, NULL);
	printf("marker without an event: %d\n", status);
	status = CALL(clEnqueueMarkerWithWaitList, queue, 3, NULL, NULL);
	printf("no wait list: %d\n", status);
	status = CALL(clEnqueueMarkerWithWaitList, NULL, 0, NULL, NULL);
	printf("no queue: %d\n", status);
	status = CALL(clGetDeviceIDs, platform, CL_DEVICE_TYPE_CUSTOM, 2, devices, NULL);
	printf("no devices: %d\n", status);
	status = CALL(clGetPlatformIDs, 0, NULL, NULL);
	printf("nothing wanted: %d\n", status);
	status = CALL(clGetCommandQueueInfo, NULL, CL_QUEUE_PROPERTIES_ARRAY, 0, NULL, NULL);
	printf("properties of no queue: %d\n", status);
	status = CALL(clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES, 1, sizes, NULL);
	printf("too small: %d\n", status);
	status = CALL(clWaitForEvents, 0, NULL);
	printf("no events: %d\n", status);
	CHECK(COMMAND(clEnqueueTask, queue, kernel, 0, NULL, NULL));
	CHECK(CALL(clFinish, queue));
	CHECK(CALL(clReleaseKernel, kernel));
	CHECK(CALL(clReleaseProgram, program));
	CHECK(CALL(clReleaseCommandQueue, queue));
}

int main(int argc, char **argv)
{
	cl_int status;
	cl_device_partition_property equally[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
	cl_device_partition_property by_counts[] = { CL_DEVICE_PARTITION_BY_COUNTS, 1, 0, 0 };
	cl_device_partition_property by_names[] = { 0x4052, 1, 0, 0 };

	if (argc < 2)
		return 2;
	CHECK(CALL(clGetPlatformIDs, 1, &platform, NULL));
	CHECK(CALL(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = CALL(clCreateContext, NULL, 1, &device, NULL, NULL, &status);
	CHECK(status);
	sub_devices("equally", equally);
	sub_devices("by counts", by_counts);
	sub_devices("by names", by_names);
	order();
	by_name();
	of_loader();
	failures();
	CHECK(CALL(clReleaseContext, context));
	return write_counts(argv[1]);
}
