/* A stand-in for NVIDIA's libcuda.so.1 and libcudart.so, for tests on machines without a GPU.
 *
 * It is not NVIDIA's library and computes nothing: a command is complete at once, and its times are
 * made up. It loads the library of CUDA_INJECTION64_PATH as the driver does, and reports its calls and
 * commands to the stand-in for CUPTI (stand_in_cupti.c) if that is loaded.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "stand_in.h"

static uint64_t (*now)(void);
static uint32_t (*correlation)(void);
static void (*hold)(void);
static void (*call)(int, uint32_t, uint32_t, const char *, const void *, int *, int);
static void (*created)(void *, void *);
static void (*record)(uint32_t, const uint8_t *);
static __thread int depth;
static int streams;

static void find_cupti(void)
{
	void *cupti = dlopen("libcupti.so.12", RTLD_LAZY | RTLD_NOLOAD);
	if (!cupti)
		return;
	now = dlsym(cupti, "stand_in_now");
	correlation = dlsym(cupti, "stand_in_correlation");
	hold = dlsym(cupti, "stand_in_lock");
	created = dlsym(cupti, "stand_in_stream");
	record = dlsym(cupti, "stand_in_record");
	call = dlsym(cupti, "stand_in_call");
}

#define PUT(at, type, value) do { type put = (value); memcpy(bytes + (at), &put, sizeof put); } while (0)
#define BEGIN(domain, number, name, ...) \
	struct { __VA_ARGS__ } arguments; \
	const uint32_t in_domain = (domain), of_number = (number); \
	const char *const of_name = (name); \
	int result = 0
#define ENTER() (depth++, call ? call(0, in_domain, of_number, of_name, &arguments, 0, depth) : (void)0)
#define LEAVE() (call ? call(1, in_domain, of_number, of_name, &arguments, &result, depth) : (void)0, depth--, \
		 result)

int cuInit(unsigned flags)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path ? dlopen(path, RTLD_NOW) : 0;
	int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : 0;
	if (initialize)
		initialize();
	find_cupti();
	BEGIN(1, 1, "cuInit", unsigned flags;);
	arguments.flags = flags;
	ENTER();
	if (record) {
		uint8_t bytes[256] = { 0 };
		PUT(0, uint32_t, 8);
		PUT(DEVICE_MEMORY, uint64_t, 1 << 30);
		PUT(DEVICE_NAME, const char *, "Stand-in");
		memset(bytes + DEVICE_UUID, 0xab, 16);
		record(8, bytes);
	}
	return LEAVE();
}

int cuCtxCreate_v2(void **context, unsigned flags, int device)
{
	BEGIN(1, 235, "cuCtxCreate_v2", void **context; unsigned flags; int device;);
	arguments.context = context;
	arguments.flags = flags;
	arguments.device = device;
	ENTER();
	*context = (void *)0x1000;
	if (record) {
		uint8_t bytes[256] = { 0 };
		PUT(0, uint32_t, 9);
		PUT(CONTEXT_ID, uint32_t, 1);
		record(9, bytes);
	}
	return LEAVE();
}

int cuStreamCreate(void **stream, unsigned flags)
{
	BEGIN(1, 124, "cuStreamCreate", void **stream; unsigned flags;);
	arguments.stream = stream;
	arguments.flags = flags;
	ENTER();
	*stream = (void *)(0x2000 + 13 + (uintptr_t)streams++);
	if (created)
		created((void *)0x1000, *stream);
	return LEAVE();
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	BEGIN(1, 243, "cuMemAlloc_v2", uint64_t *address; size_t bytes;);
	arguments.address = address;
	arguments.bytes = bytes;
	ENTER();
	if (bytes > 1ull << 40)
		result = 2;
	else
		*address = 0x7f0000000000;
	return LEAVE();
}

int cuModuleGetFunction(void **function, void *module, const char *name)
{
	BEGIN(1, 23, "cuModuleGetFunction", void **function; void *module; const char *name;);
	arguments.function = function;
	arguments.module = module;
	arguments.name = name;
	ENTER();
	*function = (void *)name;
	return LEAVE();
}

static void run_kernel(const char *name, const unsigned *sizes, void *stream)
{
	uint8_t bytes[256] = { 0 };
	if (!record)
		return;
	uint64_t start = now();
	PUT(0, uint32_t, 10);
	PUT(KERNEL_QUEUED, uint64_t, start);
	PUT(KERNEL_SUBMITTED, uint64_t, start + 100);
	PUT(KERNEL_START, uint64_t, start + 300);
	PUT(KERNEL_END, uint64_t, start + 600);
	PUT(KERNEL_CONTEXT, uint32_t, 1);
	PUT(KERNEL_STREAM, uint32_t, (uintptr_t)stream & 0xff);
	for (int i = 0; i < 6; i++)
		PUT(KERNEL_GRID + 4 * i, uint32_t, sizes[i]);
	PUT(KERNEL_CORRELATION, uint32_t, correlation());
	PUT(KERNEL_NAME, const char *, name);
	record(10, bytes);
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		   unsigned bz, unsigned shared, void *stream, void **parameters, void **extra)
{
	BEGIN(1, 307, "cuLaunchKernel", void *function; unsigned sizes[6]; unsigned shared; void *stream;
	      void **parameters; void **extra;);
	const unsigned sizes[] = { gx, gy, gz, bx, by, bz };
	arguments.function = function;
	memcpy(arguments.sizes, sizes, sizeof sizes);
	arguments.shared = shared;
	arguments.stream = stream;
	arguments.parameters = parameters;
	arguments.extra = extra;
	ENTER();
	run_kernel(function, sizes, stream);
	return LEAVE();
}

static void copy(int kind, size_t count, void *stream)
{
	uint8_t bytes[256] = { 0 };
	if (!record)
		return;
	uint64_t start = now();
	PUT(0, uint32_t, 1);
	PUT(MEMCPY_COPY_KIND, uint8_t, kind);
	PUT(MEMCPY_BYTES, uint64_t, count);
	PUT(MEMCPY_START, uint64_t, start + 50);
	PUT(MEMCPY_END, uint64_t, start + 50 + count);
	PUT(MEMCPY_CONTEXT, uint32_t, 1);
	PUT(MEMCPY_STREAM, uint32_t, stream ? (uintptr_t)stream & 0xff : 7);
	PUT(MEMCPY_CORRELATION, uint32_t, correlation());
	record(1, bytes);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
	BEGIN(1, 277, "cuMemcpyHtoDAsync_v2", uint64_t to; const void *from; size_t bytes; void *stream;);
	arguments.to = to;
	arguments.from = from;
	arguments.bytes = bytes;
	arguments.stream = stream;
	ENTER();
	copy(1, bytes, stream);
	return LEAVE();
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
	BEGIN(1, 278, "cuMemcpyDtoH_v2", void *to; uint64_t from; size_t bytes;);
	arguments.to = to;
	arguments.from = from;
	arguments.bytes = bytes;
	ENTER();
	copy(2, bytes, 0);
	return LEAVE();
}

int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count)
{
	BEGIN(1, 249, "cuMemsetD8_v2", uint64_t to; unsigned char value; size_t count;);
	arguments.to = to;
	arguments.value = value;
	arguments.count = count;
	ENTER();
	if (record) {
		uint8_t bytes[256] = { 0 };
		uint64_t start = now();
		PUT(0, uint32_t, 2);
		PUT(MEMSET_VALUE, uint32_t, value);
		PUT(MEMSET_BYTES, uint64_t, count);
		PUT(MEMSET_START, uint64_t, start + 10);
		PUT(MEMSET_END, uint64_t, start + 20);
		PUT(MEMSET_CONTEXT, uint32_t, 1);
		PUT(MEMSET_STREAM, uint32_t, 7);
		PUT(MEMSET_CORRELATION, uint32_t, correlation());
		record(2, bytes);
	}
	return LEAVE();
}

int cuStreamSynchronize(void *stream)
{
	BEGIN(1, 126, "cuStreamSynchronize", void *stream;);
	arguments.stream = stream;
	ENTER();
	if (record) {
		uint8_t bytes[256] = { 0 };
		PUT(0, uint32_t, 38);
		PUT(SYNCHRONIZATION_TYPE, uint32_t, 3);
		PUT(SYNCHRONIZATION_CORRELATION, uint32_t, correlation());
		record(38, bytes);
	}
	return LEAVE();
}

/* Calls the function while what the flush needs is held, as the driver may. */
int cuLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
	BEGIN(1, 527, "cuLaunchHostFunc", void *stream; void (*function)(void *); void *data;);
	arguments.stream = stream;
	arguments.function = function;
	arguments.data = data;
	ENTER();
	if (hold)
		hold();
	function(data);
	return LEAVE();
}

/* A function of the driver that no table knows. */
int cuStandIn(void)
{
	BEGIN(1, 60000, "cuStandIn", char none;);
	arguments.none = 0;
	ENTER();
	return LEAVE();
}

struct dim3 { unsigned x, y, z; };

int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **parameters,
		     size_t shared, void *stream)
{
	BEGIN(2, 211, "cudaLaunchKernel", const void *function; struct dim3 grid; struct dim3 block;
	      void **parameters; size_t shared; void *stream;);
	arguments.function = function;
	arguments.grid = grid;
	arguments.block = block;
	arguments.parameters = parameters;
	arguments.shared = shared;
	arguments.stream = stream;
	ENTER();
	result = cuLaunchKernel((void *)function, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared,
				stream, parameters, 0);
	return LEAVE();
}
