/* An event record of every type, in C and C++. */
#include <string.h>

#include <tracebraid/probe.h>

TB_EVENT(test, none);
TB_EVENT(test, integers, TB_INT8(i8), TB_INT16(i16), TB_INT32(i32), TB_INT64(i64), TB_UINT8(u8), TB_UINT16(u16),
	 TB_UINT32(u32), TB_UINT64(u64));
TB_EVENT(test, shown, TB_HEX8(h8), TB_HEX16(h16), TB_HEX32(h32), TB_HEX64(h64), TB_POINTER(p));
TB_EVENT(test, texts, TB_FLOAT(f), TB_DOUBLE(d), TB_STRING(s), TB_BYTES(b), TB_STRING(t));
TB_EVENT(test, ten, TB_INT32(a), TB_INT32(b), TB_INT32(c), TB_INT32(d), TB_INT32(e), TB_INT32(f), TB_INT32(g),
	 TB_INT32(h), TB_INT32(i), TB_STRING(j));

static int values(void)
{
	static char longest[6000];
	memset(longest, 'x', sizeof(longest) - 1);
	tb_trace(test, none);
	tb_trace(test, integers, -128, -32768, INT32_MIN, INT64_MIN, 255, 65535, UINT32_MAX, UINT64_MAX);
	tb_trace(test, integers, 1, 2, 3, 4, 5, 6, 7, 8);
	tb_trace(test, shown, 0xab, 0xabc, 0xdeadbeef, UINT64_MAX, (void *)0x1234);
	tb_trace(test, texts, 1.5f, -0.1, "plain", "\1\0\377", 3, "\303\244 \"quoted\" \\ \n");
	tb_trace(test, texts, 0, 1e300, NULL, NULL, 7, "");
	tb_trace(test, texts, 0, 0, longest, longest, sizeof(longest), "after");
	tb_trace(test, ten, 1, 2, 3, 4, 5, 6, 7, 8, 9, "ten");
	TB_PROF_IN();
	tb_span_begin(7, "work");
	tb_counter("queue", -3);
	tb_span_end(7);
	tb_lwp_begin("test");
	tb_lwp_processor(-1);
	tb_ult_create(1, "first");
	tb_ult_switch(0, 1);
	tb_ult_block(1, "mutex");
	tb_ult_wake(1);
	tb_ult_name(1, "renamed");
	tb_ult_state(2, -1, TB_ULT_BLOCKED, "", "sleep");
	tb_ult_call_begin(1);
	tb_ult_call_end(1);
	tb_ult_exit(1);
	tb_lwp_end();
	TB_PROF_OUT();
	return 0;
}
