#include <tracebraid/probe.h>

TB_EVENT(plugin, traced, TB_INT32(n));

void plugin_trace(int n);
void plugin_trace(int n)
{
	tb_trace(plugin, traced, n);
}
