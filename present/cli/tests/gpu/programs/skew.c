/* A layer of OpenCL whose devices have a clock with an offset and a drift: SKEW="NANOSECONDS PPB".
 *
 * The clock of PoCL is CLOCK_MONOTONIC_RAW. PoCL cannot read the timers of device and host at one
 * moment; with TIMER=1 this layer can.
 */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl_icd.h>
#include <CL/cl_layer.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static cl_icd_dispatch own;
static const cl_icd_dispatch *next;
static long long offset, drift;

static cl_ulong skewed(cl_ulong raw)
{
	return raw + offset + (cl_ulong)((__int128)raw * drift / 1000000000);
}

static cl_ulong now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static cl_int CL_API_CALL profiling_info(cl_event event, cl_profiling_info name, size_t size, void *value, size_t *size_ret)
{
	cl_int status = next->clGetEventProfilingInfo(event, name, size, value, size_ret);
	cl_ulong time;

	if (status == CL_SUCCESS && value && size >= sizeof time) {
		memcpy(&time, value, sizeof time);
		time = skewed(time);
		memcpy(value, &time, sizeof time);
	}
	return status;
}

static cl_int CL_API_CALL timers(cl_device_id device, cl_ulong *of_device, cl_ulong *of_host)
{
	(void)device;
	*of_device = skewed(now(CLOCK_MONOTONIC_RAW));
	*of_host = now(CLOCK_MONOTONIC);
	return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name, size_t size, void *value, size_t *size_ret)
{
	cl_layer_api_version version = CL_LAYER_API_VERSION_100;

	if (name != CL_LAYER_API_VERSION || (value && size < sizeof version))
		return CL_INVALID_VALUE;
	if (value)
		memcpy(value, &version, sizeof version);
	if (size_ret)
		*size_ret = sizeof version;
	return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const cl_icd_dispatch *target, cl_uint *entries_ret,
	const cl_icd_dispatch **dispatch_ret)
{
	char *rest;

	(void)entries;
	next = target;
	offset = strtoll(getenv("SKEW"), &rest, 10);
	drift = strtoll(rest, NULL, 10);
	own.clGetEventProfilingInfo = profiling_info;
	if (getenv("TIMER"))
		own.clGetDeviceAndHostTimer = timers;
	*entries_ret = sizeof own / sizeof(void *);
	*dispatch_ret = &own;
	return CL_SUCCESS;
}
