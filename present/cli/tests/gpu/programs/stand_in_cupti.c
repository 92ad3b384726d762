/* A stand-in for NVIDIA's libcupti.so.12, for tests on machines without a GPU.
 *
 * It is not NVIDIA's library and shows nothing about it: neither when the real one calls back, on
 * which threads, in which order it numbers calls, nor what it refuses. It delivers callbacks and records
 * with the layouts of CUPTI 12.9, whose offsets tests/gpu/cuda.rs passes as macros from
 * record/cuda/layouts.txt, so that the recorder can be run from the begin of a program to its end.
 *
 * STAND_IN_DROPS=1: one record is dropped. STAND_IN_REFUSES=1: the subscriber is refused.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "stand_in.h"

typedef void (*callback)(void *, uint32_t, uint32_t, const void *);
typedef void (*requested)(uint8_t **, size_t *, size_t *);
typedef void (*completed)(void *, uint32_t, uint8_t *, size_t, size_t);

static callback subscriber;
static void *user;
static uint32_t domains[8];
static uint32_t kinds[64];
static requested request;
static completed complete;
static uint64_t (*timestamp)(void);
static uint32_t correlations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *buffer;
static size_t size, filled;
static size_t dropped;
static __thread uint32_t current;

static const size_t sizes[64] = {
	[1] = 96, [2] = 88, [8] = 184, [9] = 32, [10] = 208, [22] = 96, [25] = 104, [37] = 24, [38] = 56,
};

int cuptiGetVersion(uint32_t *version) { *version = 28; return 0; }

int cuptiSubscribe(void **handle, callback of, void *data)
{
	if (getenv("STAND_IN_REFUSES"))
		return 39;
	subscriber = of;
	user = data;
	*handle = &subscriber;
	return 0;
}

int cuptiUnsubscribe(void *handle) { (void)handle; subscriber = 0; return 0; }

int cuptiEnableDomain(uint32_t enable, void *handle, uint32_t domain)
{
	(void)handle;
	domains[domain] = enable;
	return 0;
}

int cuptiEnableCallback(uint32_t enable, void *handle, uint32_t domain, uint32_t number)
{
	(void)number;
	return cuptiEnableDomain(enable, handle, domain);
}

int cuptiActivityEnable(uint32_t kind) { kinds[kind] = 1; return 0; }
int cuptiActivityDisable(uint32_t kind) { kinds[kind] = 0; return 0; }
int cuptiActivityEnableLatencyTimestamps(uint8_t enable) { (void)enable; return 0; }
int cuptiActivityRegisterTimestampCallback(uint64_t (*of)(void)) { timestamp = of; return 0; }
int cuptiActivityConfigureUnifiedMemoryCounter(void *of, uint32_t n) { (void)of; (void)n; return 0; }

int cuptiActivityRegisterCallbacks(requested of_request, completed of_complete)
{
	request = of_request;
	complete = of_complete;
	dropped = getenv("STAND_IN_DROPS") ? 1 : 0;
	return 0;
}

int cuptiActivityGetNextRecord(uint8_t *from, size_t bytes, uint8_t **record)
{
	uint8_t *next = from;
	if (*record) {
		uint32_t kind;
		memcpy(&kind, *record, sizeof kind);
		next = *record + sizes[kind];
	}
	if (next >= from + bytes)
		return 12;
	*record = next;
	return 0;
}

int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
	(void)context;
	(void)stream;
	*count = __atomic_exchange_n(&dropped, 0, __ATOMIC_RELAXED);
	return 0;
}

int cuptiGetContextId(void *context, uint32_t *number) { (void)context; *number = 1; return 0; }

int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *number)
{
	(void)context;
	(void)per_thread;
	*number = (uint32_t)(uintptr_t)stream & 0xff;
	return 0;
}

static void deliver(void)
{
	uint8_t *full = buffer;
	size_t bytes = filled, of = size;
	buffer = 0;
	filled = 0;
	if (full)
		complete(0, 0, full, of, bytes);
}

int cuptiActivityFlushAll(uint32_t flag)
{
	(void)flag;
	pthread_mutex_lock(&lock);
	deliver();
	pthread_mutex_unlock(&lock);
	return 0;
}

/* For the stand-in of libcuda, which has no other way to reach these. */

uint64_t stand_in_now(void)
{
	struct timespec now;
	if (timestamp)
		return timestamp();
	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

uint32_t stand_in_correlation(void) { return current; }
void stand_in_lock(void) { pthread_mutex_lock(&lock); }

/* Begin (site 0) or end (1) of a call. Nested calls have the number of the outermost. */
void stand_in_call(int site, uint32_t domain, uint32_t number, const char *name, const void *arguments,
		   int *result, int depth)
{
	uint8_t data[128] = { 0 };
	uint32_t at = site;
	if (site == 0 && depth == 1)
		current = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
	memcpy(data + CALLBACK_SITE, &at, 4);
	memcpy(data + CALLBACK_NAME, &name, 8);
	memcpy(data + CALLBACK_PARAMS, &arguments, 8);
	memcpy(data + CALLBACK_RESULT, &result, 8);
	memcpy(data + CALLBACK_CORRELATION, &current, 4);
	if (subscriber && domains[domain])
		subscriber(user, domain, number, data);
}

void stand_in_stream(void *context, void *stream)
{
	uint8_t data[32] = { 0 };
	memcpy(data + RESOURCE_CONTEXT, &context, 8);
	memcpy(data + RESOURCE_STREAM, &stream, 8);
	if (subscriber && domains[3])
		subscriber(user, 3, 3, data);
}

void stand_in_record(uint32_t kind, const uint8_t *record)
{
	size_t most;
	pthread_mutex_lock(&lock);
	if (kinds[kind]) {
		if (buffer && filled + sizes[kind] > size)
			deliver();
		if (!buffer)
			request(&buffer, &size, &most);
		if (buffer) {
			memcpy(buffer + filled, record, sizes[kind]);
			filled += sizes[kind];
		}
	}
	pthread_mutex_unlock(&lock);
}
