/* Helpers of BPF programs, by the kernel's numbers (include/uapi/linux/bpf.h), and declarations of
 * maps. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* Laid out as in the trace; aligned to eight, since the compiler would otherwise store byte by
 * byte. */
#define PACKED __attribute__((packed, aligned(8)))

/* Map attributes are types, which the loader reads from BTF. */
#define MAP_INT(name, value) int (*name)[value]
#define MAP_TYPE(name, type) type *name

enum map_type {
	MAP_HASH = 1,
	MAP_ARRAY = 2,
	MAP_PERF_EVENT_ARRAY = 4,
	MAP_PERCPU_ARRAY = 6,
	MAP_LRU_HASH = 9,
	MAP_TASK_STORAGE = 29,
};

struct task_struct;
struct seq_file;

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static u64 (*const bpf_get_current_uid_gid)(void) = (void *)15;
static long (*const bpf_get_current_comm)(void *to, u32 size) = (void *)16;
static long (*const bpf_perf_event_read_value)(void *map, u64 index, void *to, u32 size) = (void *)55;
static long (*const bpf_get_stack)(void *context, void *to, u32 size, u64 flags) = (void *)67;
static long (*const bpf_probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const bpf_probe_read_user_str)(void *to, u32 size, const void *from) = (void *)114;
static long (*const bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static u64 (*const bpf_jiffies64)(void) = (void *)118;
static long (*const bpf_seq_write)(struct seq_file *to, const void *data, u32 size) = (void *)127;
static long (*const bpf_get_task_stack)(struct task_struct *task, void *to, u32 size, u64 flags) = (void *)141;
static void *(*const bpf_task_storage_get)(void *map, struct task_struct *task, void *value, u64 flags) = (void *)156;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static struct pt_regs *(*const bpf_task_pt_regs)(struct task_struct *task) = (void *)175;
static u64 (*const bpf_get_attach_cookie)(void *context) = (void *)174;
static long (*const bpf_find_vma)(struct task_struct *task, u64 address, void *callback, void *context,
				  u64 flags) = (void *)180;

static long (*const bpf_loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;

#define BPF_ANY 0
/* Elements are allocated on demand, which task storage requires. */
#define NO_PREALLOC 1
/* For arrays that user space maps. */
#define MMAPABLE (1 << 10)
/* Creates the element if the task has none. */
#define STORAGE_CREATE 1
/* The user-space stack instead of the kernel's. */
#define USER_STACK (1 << 8)
/* A kernel function that not all kernels have. */
#define KFUNC extern __attribute__((section(".ksyms"), weak))

#define offset_of(type, field) __builtin_offsetof(type, field)
