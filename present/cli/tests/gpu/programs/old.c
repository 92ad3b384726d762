/* A loader of OpenCL 1.0 with few functions (compiled with -DLOADER), and a program that uses it.
 *
 *     old COUNTS
 */
#include "counted.h"

#ifdef LOADER

static int alive;

cl_int clGetPlatformIDs(cl_uint most, cl_platform_id *platforms, cl_uint *number)
{
	if (platforms && most)
		*platforms = (cl_platform_id)&alive;
	if (number)
		*number = 1;
	return 0;
}

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
				      cl_command_queue_properties properties, cl_int *status)
{
	(void)context;
	(void)device;
	/* The device has no profiling. */
	*status = properties ? CL_INVALID_QUEUE_PROPERTIES : 0;
	return properties ? NULL : (cl_command_queue)&alive;
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
			   void *to, cl_uint number, const cl_event *list, cl_event *event)
{
	(void)queue;
	(void)buffer;
	(void)blocking;
	(void)offset;
	(void)number;
	(void)list;
	memset(to, 7, size);
	if (event) {
		*event = malloc(1);
		alive++;
	}
	return 0;
}

cl_int clReleaseEvent(cl_event event)
{
	free(event);
	alive--;
	return 0;
}

cl_int clReleaseCommandQueue(cl_command_queue queue)
{
	(void)queue;
	printf("events not released: %d\n", alive);
	return 0;
}

#else


int main(int argc, char **argv)
{
	cl_platform_id platform;
	cl_event event;
	cl_int status, read[3] = {0};

	if (argc < 2)
		return 2;
	CHECK(CALL(clGetPlatformIDs, 1, &platform, NULL));
	cl_command_queue queue = CALL(clCreateCommandQueue, NULL, NULL, 0, &status);
	CHECK(status);
	CHECK(COMMAND(clEnqueueReadBuffer, queue, NULL, CL_TRUE, 0, 4, &read[0], 0, NULL, NULL));
	CHECK(COMMAND(clEnqueueReadBuffer, queue, NULL, CL_FALSE, 0, 4, &read[1], 0, NULL, NULL));
	CHECK(COMMAND(clEnqueueReadBuffer, queue, NULL, CL_FALSE, 0, 4, &read[2], 0, NULL, &event));
	CHECK(CALL(clReleaseEvent, event));
	CHECK(CALL(clReleaseCommandQueue, queue));
	printf("read: %x %x %x\n", read[0], read[1], read[2]);
	return write_counts(argv[1]);
}

#endif
