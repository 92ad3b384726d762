/* Loads the loader of OpenCL for itself only, and unloads it: three times.
 *
 *     loaded COUNTS
 */
#include "counted.h"
#include <dlfcn.h>

#define FIND(function) \
	__typeof__(function) *own_##function = (__typeof__(function) *)dlsym(loader, #function); \
	if (!own_##function) \
		return 1
#define OWN(function, ...) (count(#function, 0), own_##function(__VA_ARGS__))

static int use(void *loader)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_event event;
	cl_int status;
	FIND(clGetPlatformIDs);
	FIND(clGetDeviceIDs);
	FIND(clCreateContext);
	FIND(clCreateCommandQueueWithProperties);
	FIND(clEnqueueMarkerWithWaitList);
	FIND(clFinish);
	FIND(clReleaseEvent);
	FIND(clReleaseCommandQueue);
	FIND(clReleaseContext);

	CHECK(OWN(clGetPlatformIDs, 1, &platform, NULL));
	CHECK(OWN(clGetDeviceIDs, platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
	cl_context context = OWN(clCreateContext, NULL, 1, &device, NULL, NULL, &status);
	CHECK(status);
	cl_command_queue queue = OWN(clCreateCommandQueueWithProperties, context, device, NULL, &status);
	CHECK(status);
	commands += 2;
	CHECK(OWN(clEnqueueMarkerWithWaitList, queue, 0, NULL, NULL));
	CHECK(OWN(clEnqueueMarkerWithWaitList, queue, 0, NULL, &event));
	CHECK(OWN(clFinish, queue));
	CHECK(OWN(clReleaseEvent, event));
	CHECK(OWN(clReleaseCommandQueue, queue));
	CHECK(OWN(clReleaseContext, context));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	for (int turn = 0; turn < 3; turn++) {
		void *loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);

		if (!loader || use(loader))
			return 1;
		printf("unloaded: %d\n", dlclose(loader));
	}
	return write_counts(argv[1]);
}
