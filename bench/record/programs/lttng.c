#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng.h"

#include "measure.h"

int main(void)
{
	MEASURE_ALL(lttng_ust_tracepoint(bench, enabled, i, -i), lttng_ust_tracepoint(bench, disabled, i, -i));
}
