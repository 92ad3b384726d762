#include <tracebraid/probe.h>

#include "measure.h"

TB_EVENT(bench, enabled, TB_INT32(a), TB_INT32(b));
TB_EVENT(bench, disabled, TB_INT32(a), TB_INT32(b));

int main(void)
{
	MEASURE_ALL(tb_trace(bench, enabled, i, -i), tb_trace(bench, disabled, i, -i));
}
