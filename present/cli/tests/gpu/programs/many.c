/* Creates many queues, and makes calls within calls, by callbacks of events that are complete.
 *
 *     many COUNTS
 */
#include "counted.h"

#define QUEUES 1000
#define DEPTH 300

static cl_context context;

static void CL_CALLBACK again(cl_event event, cl_int status, void *depth)
{
	cl_int error;
	cl_event next;
	size_t left = (size_t)depth;

	(void)status;
	if (left == 0)
		return;
	next = CALL(clCreateUserEvent, context, &error);
	CHECK(error);
	CHECK(CALL(clSetUserEventStatus, next, CL_COMPLETE));
	CHECK(CALL(clSetEventCallback, next, CL_COMPLETE, again, (void *)(left - 1)));
	CHECK(CALL(clReleaseEvent, next));
	(void)event;
}

int main(int argc, char **argv)
{
	static cl_command_queue queues[QUEUES];
	cl_platform_id platform;
	cl_device_id device;
	cl_int status;
	int profiled = 0;

	(void)argc;
	CHECK(CALL(clGetPlatformIDs, 1, &platform, NULL));
	CHECK(CALL(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	context = CALL(clCreateContext, NULL, 1, &device, NULL, NULL, &status);
	CHECK(status);
	for (int i = 0; i < QUEUES; i++) {
		queues[i] = CALL(clCreateCommandQueueWithProperties, context, device, NULL, &status);
		CHECK(status);
	}
	for (int i = 0; i < QUEUES; i++) {
		cl_command_queue_properties properties = 0;

		CHECK(CALL(clGetCommandQueueInfo, queues[i], CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL));
		profiled += (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
		CHECK(CALL(clReleaseCommandQueue, queues[i]));
	}
	printf("%d queues are profiled\n", profiled);
	again(NULL, CL_COMPLETE, (void *)DEPTH);
	return write_counts(argv[1]);
}
