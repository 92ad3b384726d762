#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng.h"

#if !defined(BENCH_LTTNG_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(bench, enabled, LTTNG_UST_TP_ARGS(int, a, int, b),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, a, a) lttng_ust_field_integer(int, b, b)))

LTTNG_UST_TRACEPOINT_EVENT(bench, disabled, LTTNG_UST_TP_ARGS(int, a, int, b),
	LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, a, a) lttng_ust_field_integer(int, b, b)))

#endif

#include <lttng/tracepoint-event.h>
