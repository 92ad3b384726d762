/* Runs with and without the library. */
#define TB_OPTIONAL
#include <tracebraid/probe.h>

TB_EVENT(optional, traced, TB_INT32(n));

int main(void)
{
	TB_PROF_IN();
	tb_trace(optional, traced, 42);
	tb_span_begin(1, "optional");
	tb_span_end(1);
	tb_counter("optional", 1);
	tb_lwp_begin("optional");
	tb_lwp_processor(0);
	tb_ult_create(1, "optional");
	tb_ult_switch(0, 1);
	tb_ult_block(1, "sleep");
	tb_ult_wake(1);
	tb_ult_name(1, "optional");
	tb_ult_state(2, -1, TB_ULT_READY, "", "");
	tb_ult_call_begin(1);
	tb_ult_call_end(1);
	tb_ult_exit(1);
	tb_lwp_end();
	TB_PROF_OUT();
	return 0;
}
