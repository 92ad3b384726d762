/* Probes for C11 and C++17. Link with -ltracebraid_probe.
 *
 * Declare an event class at file scope (in a header, if several files use it), then trace:
 *
 *     #include <tracebraid/probe.h>
 *
 *     TB_EVENT(my_server, request, TB_INT32(fd), TB_STRING(path), TB_BYTES(key));
 *
 *     tb_trace(my_server, request, fd, path, key, key_length);
 *
 * Up to ten fields: TB_INT8 to TB_INT64, TB_UINT8 to TB_UINT64, TB_HEX8 to TB_HEX64 (unsigned,
 * shown in base 16), TB_POINTER, TB_FLOAT, TB_DOUBLE, TB_STRING (one argument; NULL is recorded as
 * "(null)"), TB_BYTES (two arguments: address and length). TB_EVENT(p, n) alone has no fields.
 * Strings and byte arrays are cut to TB_MOST_TEXT bytes.
 *
 * tb_trace evaluates its arguments only if the event class is enabled; otherwise it costs a load
 * and a branch. It may be used anywhere: in signal handlers, in constructors, in libraries that are
 * loaded and unloaded. tb_enabled(provider, name) guards work that only tracing needs.
 *
 * If TB_OPTIONAL is defined before this header is included, the program also runs without the
 * library (with probes disabled), and is traced when LD_PRELOAD loads the library.
 */
#ifndef TRACEBRAID_PROBE_H
#define TRACEBRAID_PROBE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifdef TB_OPTIONAL
#define TB_IMPORT __attribute__((weak))
#else
#define TB_IMPORT
#endif

/* Maximum length in bytes of a recorded string or byte array. */
#define TB_MOST_TEXT 4095

/* Descriptor of an event class. Its members are private to the library. */
struct tb_class {
	const volatile uint8_t *enabled;
	const char *name;
	const char *fields;
	void *describe;
	uint32_t epoch;
	uint16_t id;
	uint8_t off;
};

/* Called by the constructors that TB_EVENT defines. */
void tb_register(struct tb_class *event_class) TB_IMPORT;

/* Reserves `size` bytes for fields. Returns NULL if there is no room; the loss has been counted. */
void *tb_reserve(const struct tb_class *event_class, size_t size) TB_IMPORT __attribute__((noplt));

/* Records an event of an enabled class whose fields are encoded already, without gaps between them.
 * For other languages. */
void tb_record(const struct tb_class *event_class, const void *fields, size_t size) TB_IMPORT;

/* Event classes known to reports (tracebraid:prof_in, ...). */
void tb_prof_in(const char *name) TB_IMPORT;
void tb_prof_out(const char *name) TB_IMPORT;
void tb_span_begin(uint64_t id, const char *name) TB_IMPORT;
void tb_span_end(uint64_t id) TB_IMPORT;
void tb_counter(const char *name, int64_t value) TB_IMPORT;

/* Scheduling of user-level threads. An LWP is a kernel thread that runs them; "this LWP" is the
 * calling thread. Ids are above 0, below UINT64_MAX, and unique among the live user-level threads
 * of the process; 0 stands for none: the scheduler's own code. */

/* A user-level thread is created, and is ready. */
void tb_ult_create(uint64_t ult, const char *name) TB_IMPORT;
/* This LWP switches. The previous one stays ready unless it was blocked or has ended. */
void tb_ult_switch(uint64_t prev_ult, uint64_t next_ult) TB_IMPORT;
/* It waits: before the switch from it, or after it if the scheduler decides late. The reason is a
 * word in lower case: mutex, condition, channel, select, sleep, network, io, join, ... */
void tb_ult_block(uint64_t ult, const char *reason) TB_IMPORT;
/* It is ready, also if it was woken between its block and the switch from it. */
void tb_ult_wake(uint64_t ult) TB_IMPORT;
/* It ends; this LWP then switches from it. */
void tb_ult_exit(uint64_t ult) TB_IMPORT;
void tb_ult_name(uint64_t ult, const char *name) TB_IMPORT;
/* It enters and leaves a system call, on this LWP. */
void tb_ult_call_begin(uint64_t ult) TB_IMPORT;
void tb_ult_call_end(uint64_t ult) TB_IMPORT;

/* State of a user-level thread that exists already. `lwp` is the thread id of its LWP, -1 without
 * one. `name` and `reason` may be empty. */
enum { TB_ULT_READY, TB_ULT_RUNNING, TB_ULT_BLOCKED, TB_ULT_CALLING };
void tb_ult_state(uint64_t ult, int32_t lwp, uint8_t state, const char *name, const char *reason) TB_IMPORT;

/* The calling thread becomes an LWP of the scheduler of that name, and is one no longer. */
void tb_lwp_begin(const char *runtime) TB_IMPORT;
void tb_lwp_end(void) TB_IMPORT;
/* The scheduler's processor that this LWP holds from now on; -1 stands for none. */
void tb_lwp_processor(int32_t processor) TB_IMPORT;

#ifdef __cplusplus
}
#endif

#ifdef TB_OPTIONAL
/* Without the library the functions above do not exist. A macro does not expand its own name. */
#define TB_IF_THERE(function, ...) ((function) ? (function)(__VA_ARGS__) : (void)0)
#define tb_prof_in(name) TB_IF_THERE(tb_prof_in, name)
#define tb_prof_out(name) TB_IF_THERE(tb_prof_out, name)
#define tb_span_begin(id, name) TB_IF_THERE(tb_span_begin, id, name)
#define tb_span_end(id) TB_IF_THERE(tb_span_end, id)
#define tb_counter(name, value) TB_IF_THERE(tb_counter, name, value)
#define tb_ult_create(ult, name) TB_IF_THERE(tb_ult_create, ult, name)
#define tb_ult_switch(prev_ult, next_ult) TB_IF_THERE(tb_ult_switch, prev_ult, next_ult)
#define tb_ult_block(ult, reason) TB_IF_THERE(tb_ult_block, ult, reason)
#define tb_ult_wake(ult) TB_IF_THERE(tb_ult_wake, ult)
#define tb_ult_exit(ult) TB_IF_THERE(tb_ult_exit, ult)
#define tb_ult_name(ult, name) TB_IF_THERE(tb_ult_name, ult, name)
#define tb_ult_call_begin(ult) TB_IF_THERE(tb_ult_call_begin, ult)
#define tb_ult_call_end(ult) TB_IF_THERE(tb_ult_call_end, ult)
#define tb_ult_state(ult, lwp, state, name, reason) TB_IF_THERE(tb_ult_state, ult, lwp, state, name, reason)
#define tb_lwp_begin(runtime) TB_IF_THERE(tb_lwp_begin, runtime)
#define tb_lwp_end() TB_IF_THERE(tb_lwp_end)
#define tb_lwp_processor(processor) TB_IF_THERE(tb_lwp_processor, processor)
#endif

/* Use at the beginning and before each end of a function. */
#define TB_PROF_IN() tb_prof_in(__func__)
#define TB_PROF_OUT() tb_prof_out(__func__)

/* Turns the unfinished record, which tb_reserve has published, into a record of its class. */
static inline void tb_commit(const struct tb_class *event_class, void *payload)
{
	__atomic_store_n((uint16_t *)((char *)payload - 12), event_class->id, __ATOMIC_RELEASE);
}

#ifndef __cplusplus
/* Strict C11 hides the declaration. */
extern size_t strnlen(const char *text, size_t most);
#endif

static inline uint32_t tb_length_of(const char *text)
{
	return (uint32_t)strnlen(text, TB_MOST_TEXT);
}

static inline char *tb_put(char *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	return to + size;
}

/* --- Fields: a field is a tuple (kind, name); macros for a kind are found by token concatenation.
 * --- */

#define TB_INT8(name) (INT8, name)
#define TB_INT16(name) (INT16, name)
#define TB_INT32(name) (INT32, name)
#define TB_INT64(name) (INT64, name)
#define TB_UINT8(name) (UINT8, name)
#define TB_UINT16(name) (UINT16, name)
#define TB_UINT32(name) (UINT32, name)
#define TB_UINT64(name) (UINT64, name)
#define TB_HEX8(name) (HEX8, name)
#define TB_HEX16(name) (HEX16, name)
#define TB_HEX32(name) (HEX32, name)
#define TB_HEX64(name) (HEX64, name)
#define TB_POINTER(name) (POINTER, name)
#define TB_FLOAT(name) (FLOAT, name)
#define TB_DOUBLE(name) (DOUBLE, name)
#define TB_STRING(name) (STRING, name)
#define TB_BYTES(name) (BYTES, name)

/* Parameters of the tracing function. */
#define TB_P_INT8(n) int8_t n
#define TB_P_INT16(n) int16_t n
#define TB_P_INT32(n) int32_t n
#define TB_P_INT64(n) int64_t n
#define TB_P_UINT8(n) uint8_t n
#define TB_P_UINT16(n) uint16_t n
#define TB_P_UINT32(n) uint32_t n
#define TB_P_UINT64(n) uint64_t n
#define TB_P_HEX8(n) uint8_t n
#define TB_P_HEX16(n) uint16_t n
#define TB_P_HEX32(n) uint32_t n
#define TB_P_HEX64(n) uint64_t n
#define TB_P_POINTER(n) const void *n
#define TB_P_FLOAT(n) float n
#define TB_P_DOUBLE(n) double n
#define TB_P_STRING(n) const char *n
#define TB_P_BYTES(n) const void *n, size_t tb_length_##n

/* Declarations in TSDL. */
#define TB_TSDL_INTEGER(bits, sign, base, n) \
	"integer { size = " #bits "; align = 8; signed = " #sign "; base = " #base "; } _" #n ";\n"
#define TB_D_INT8(n) TB_TSDL_INTEGER(8, true, 10, n)
#define TB_D_INT16(n) TB_TSDL_INTEGER(16, true, 10, n)
#define TB_D_INT32(n) TB_TSDL_INTEGER(32, true, 10, n)
#define TB_D_INT64(n) TB_TSDL_INTEGER(64, true, 10, n)
#define TB_D_UINT8(n) TB_TSDL_INTEGER(8, false, 10, n)
#define TB_D_UINT16(n) TB_TSDL_INTEGER(16, false, 10, n)
#define TB_D_UINT32(n) TB_TSDL_INTEGER(32, false, 10, n)
#define TB_D_UINT64(n) TB_TSDL_INTEGER(64, false, 10, n)
#define TB_D_HEX8(n) TB_TSDL_INTEGER(8, false, 16, n)
#define TB_D_HEX16(n) TB_TSDL_INTEGER(16, false, 16, n)
#define TB_D_HEX32(n) TB_TSDL_INTEGER(32, false, 16, n)
#define TB_D_HEX64(n) TB_TSDL_INTEGER(64, false, 16, n)
#if UINTPTR_MAX > 0xffffffffu
#define TB_D_POINTER(n) TB_TSDL_INTEGER(64, false, 16, n)
#else
#define TB_D_POINTER(n) TB_TSDL_INTEGER(32, false, 16, n)
#endif
#define TB_D_FLOAT(n) "floating_point { exp_dig = 8; mant_dig = 24; align = 8; } _" #n ";\n"
#define TB_D_DOUBLE(n) "floating_point { exp_dig = 11; mant_dig = 53; align = 8; } _" #n ";\n"
#define TB_D_STRING(n) "string _" #n ";\n"
#define TB_D_BYTES(n) \
	"integer { size = 32; align = 8; signed = false; } __" #n "_length;\n" \
	"integer { size = 8; align = 8; signed = false; } _" #n "[ __" #n "_length ];\n"

/* Lengths, determined once before reserving: another thread may change the text meanwhile. */
#define TB_L_FIXED(n)
#define TB_L_INT8 TB_L_FIXED
#define TB_L_INT16 TB_L_FIXED
#define TB_L_INT32 TB_L_FIXED
#define TB_L_INT64 TB_L_FIXED
#define TB_L_UINT8 TB_L_FIXED
#define TB_L_UINT16 TB_L_FIXED
#define TB_L_UINT32 TB_L_FIXED
#define TB_L_UINT64 TB_L_FIXED
#define TB_L_HEX8 TB_L_FIXED
#define TB_L_HEX16 TB_L_FIXED
#define TB_L_HEX32 TB_L_FIXED
#define TB_L_HEX64 TB_L_FIXED
#define TB_L_POINTER TB_L_FIXED
#define TB_L_FLOAT TB_L_FIXED
#define TB_L_DOUBLE TB_L_FIXED
#define TB_L_STRING(n) \
	if (!n) \
		n = "(null)"; \
	uint32_t tb_bytes_##n = tb_length_of(n);
#define TB_L_BYTES(n) \
	uint32_t tb_bytes_##n = (uint32_t)(!n ? 0 : tb_length_##n < TB_MOST_TEXT ? tb_length_##n : TB_MOST_TEXT);

/* Sizes in bytes. */
#define TB_S_FIXED(n) +sizeof(n)
#define TB_S_INT8 TB_S_FIXED
#define TB_S_INT16 TB_S_FIXED
#define TB_S_INT32 TB_S_FIXED
#define TB_S_INT64 TB_S_FIXED
#define TB_S_UINT8 TB_S_FIXED
#define TB_S_UINT16 TB_S_FIXED
#define TB_S_UINT32 TB_S_FIXED
#define TB_S_UINT64 TB_S_FIXED
#define TB_S_HEX8 TB_S_FIXED
#define TB_S_HEX16 TB_S_FIXED
#define TB_S_HEX32 TB_S_FIXED
#define TB_S_HEX64 TB_S_FIXED
#define TB_S_POINTER TB_S_FIXED
#define TB_S_FLOAT TB_S_FIXED
#define TB_S_DOUBLE TB_S_FIXED
#define TB_S_STRING(n) +tb_bytes_##n + 1
#define TB_S_BYTES(n) +4 + tb_bytes_##n

/* Writes the fields. */
#define TB_W_FIXED(n) tb_to = tb_put(tb_to, &n, sizeof(n));
#define TB_W_INT8 TB_W_FIXED
#define TB_W_INT16 TB_W_FIXED
#define TB_W_INT32 TB_W_FIXED
#define TB_W_INT64 TB_W_FIXED
#define TB_W_UINT8 TB_W_FIXED
#define TB_W_UINT16 TB_W_FIXED
#define TB_W_UINT32 TB_W_FIXED
#define TB_W_UINT64 TB_W_FIXED
#define TB_W_HEX8 TB_W_FIXED
#define TB_W_HEX16 TB_W_FIXED
#define TB_W_HEX32 TB_W_FIXED
#define TB_W_HEX64 TB_W_FIXED
#define TB_W_POINTER TB_W_FIXED
#define TB_W_FLOAT TB_W_FIXED
#define TB_W_DOUBLE TB_W_FIXED
/* A NUL that another thread stores meanwhile would end the string early and shift all following
 * fields. */
#define TB_W_STRING(n) tb_to = tb_put_text(tb_to, n, tb_bytes_##n);
#define TB_W_BYTES(n) \
	tb_to = tb_put(tb_to, &tb_bytes_##n, 4); \
	if (tb_bytes_##n) \
		tb_to = tb_put(tb_to, n, tb_bytes_##n);

static inline char *tb_put_text(char *to, const char *from, uint32_t length)
{
	char *nul;
	memcpy(to, from, length);
	to[length] = 0;
	while (__builtin_expect((nul = (char *)memchr(to, 0, length)) != NULL, 0))
		*nul = '?';
	return to + length + 1;
}

/* --- Iteration over up to ten fields. --- */

#define TB_CAT_(a, b) a##b
#define TB_CAT(a, b) TB_CAT_(a, b)
#define TB_COUNT_(ignored, _1, _2, _3, _4, _5, _6, _7, _8, _9, _10, count, ...) count
#define TB_COUNT(...) TB_COUNT_(__VA_ARGS__, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, )

#define TB_APPLY(op, field) TB_APPLY_(op, TB_KIND field, TB_NAME field)
#define TB_APPLY_(...) TB_APPLY__(__VA_ARGS__)
#define TB_APPLY__(op, kind, name) TB_CAT(op, kind)(name)
#define TB_KIND(kind, name) kind
#define TB_NAME(kind, name) name

#define TB_EACH_0(op, sep, event)
#define TB_EACH_1(op, sep, event, a) TB_APPLY(op, a)
#define TB_EACH_2(op, sep, event, a, ...) TB_APPLY(op, a) sep() TB_EACH_1(op, sep, event, __VA_ARGS__)
#define TB_EACH_3(op, sep, event, a, ...) TB_APPLY(op, a) sep() TB_EACH_2(op, sep, event, __VA_ARGS__)
#define TB_EACH_4(op, sep, event, a, ...) TB_APPLY(op, a) sep() TB_EACH_3(op, sep, event, __VA_ARGS__)
#define TB_EACH_5(op, sep, event, a, ...) TB_APPLY(op, a) sep() TB_EACH_4(op, sep, event, __VA_ARGS__)
#define TB_EACH_6(op, sep, event, a, ...) TB_APPLY(op, a) sep() TB_EACH_5(op, sep, event, __VA_ARGS__)
#define TB_EACH_7(op, sep, event, a, ...) TB_APPLY(op, a) sep() TB_EACH_6(op, sep, event, __VA_ARGS__)
#define TB_EACH_8(op, sep, event, a, ...) TB_APPLY(op, a) sep() TB_EACH_7(op, sep, event, __VA_ARGS__)
#define TB_EACH_9(op, sep, event, a, ...) TB_APPLY(op, a) sep() TB_EACH_8(op, sep, event, __VA_ARGS__)
#define TB_EACH_10(op, sep, event, a, ...) TB_APPLY(op, a) sep() TB_EACH_9(op, sep, event, __VA_ARGS__)
/* `event` comes first so that the list is never empty. */
#define TB_EACH(op, sep, ...) TB_CAT(TB_EACH_, TB_COUNT(__VA_ARGS__))(op, sep, __VA_ARGS__)
#define TB_NOTHING()
#define TB_COMMA() ,

/* Parameters, or void. */
#define TB_PARAMETERS(...) TB_CAT(TB_PARAMETERS_, TB_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define TB_PARAMETERS_0(event) void
#define TB_PARAMETERS_1(...) TB_EACH(TB_P_, TB_COMMA, __VA_ARGS__)
#define TB_PARAMETERS_2 TB_PARAMETERS_1
#define TB_PARAMETERS_3 TB_PARAMETERS_1
#define TB_PARAMETERS_4 TB_PARAMETERS_1
#define TB_PARAMETERS_5 TB_PARAMETERS_1
#define TB_PARAMETERS_6 TB_PARAMETERS_1
#define TB_PARAMETERS_7 TB_PARAMETERS_1
#define TB_PARAMETERS_8 TB_PARAMETERS_1
#define TB_PARAMETERS_9 TB_PARAMETERS_1
#define TB_PARAMETERS_10 TB_PARAMETERS_1

/* TB_EVENT(provider, name, fields...) */
#define TB_EVENT(provider, ...) TB_EVENT_(provider, __VA_ARGS__)
#define TB_EVENT_(provider, ...) TB_DEFINE(provider, TB_FIRST(__VA_ARGS__, ), __VA_ARGS__)
#define TB_FIRST(first, ...) first
#define TB_DEFINE(provider, event, ...) TB_DEFINE_(provider, event, __VA_ARGS__)

#define TB_DEFINE_(provider, event, ...) \
	static struct tb_class tb_class_##provider##_##event = { \
		&tb_class_##provider##_##event.off, #provider ":" #event, \
		"" TB_EACH(TB_D_, TB_NOTHING, __VA_ARGS__), NULL, 0, 0, 0 \
	}; \
	__attribute__((constructor, unused)) static void tb_constructor_##provider##_##event(void) \
	{ \
		TB_IF_LOADED tb_register(&tb_class_##provider##_##event); \
	} \
	__attribute__((unused)) static inline void tb_event_##provider##_##event( \
		TB_PARAMETERS(__VA_ARGS__)) \
	{ \
		TB_EACH(TB_L_, TB_NOTHING, __VA_ARGS__) \
		char *tb_payload = (char *)tb_reserve(&tb_class_##provider##_##event, \
						      (size_t)0 TB_EACH(TB_S_, TB_NOTHING, __VA_ARGS__)); \
		if (__builtin_expect(tb_payload != NULL, 1)) { \
			char *tb_to = tb_payload; \
			TB_EACH(TB_W_, TB_NOTHING, __VA_ARGS__) \
			(void)tb_to; \
			tb_commit(&tb_class_##provider##_##event, tb_payload); \
		} \
	} \
	struct tb_end_of_##provider##_##event

#ifdef TB_OPTIONAL
#define TB_IF_LOADED if (tb_register)
#else
#define TB_IF_LOADED
#endif

/* True if an event class is enabled. */
#define tb_enabled(provider, event) __builtin_expect(*tb_class_##provider##_##event.enabled != 0, 0)

/* Records an event if its class is enabled. */
#define tb_trace(provider, event, ...) \
	do { \
		if (tb_enabled(provider, event)) \
			tb_event_##provider##_##event(__VA_ARGS__); \
	} while (0)

#endif
