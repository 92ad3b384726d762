/* Runs with and without the library. */
#define TB_OPTIONAL
#include <tracebraid/probe.h>

TB_EVENT(optional, traced, TB_INT32(n));

int main(void)
{
	tb_trace(optional, traced, 42);
	return 0;
}
