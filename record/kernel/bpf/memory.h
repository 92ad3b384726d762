/* Page faults, and waiting for locks. */
#pragma once

#include "running.h"
#include "where.h"

/* Other architectures do not have these tracepoints. */
#if defined(__TARGET_ARCH_x86)
struct faulted {
	struct head head;
	u64 address;
	u64 ip;
	u64 error_code;
} PACKED;

#define ON_FAULT(event, name) \
	SEC("tp_btf/" #event) \
	int on_##event(u64 *args) \
	{ \
		struct pt_regs *regs = (void *)args[1]; \
		if (!current_is_target() || !fault_is_wanted()) \
			return 0; \
		BEGIN(record, faulted, name); \
		record->address = args[0]; \
		record->ip = regs->ip; \
		record->error_code = args[2]; \
		end(record); \
		return 0; \
	}

ON_FAULT(page_fault_user, x86_exceptions_page_fault_user)
ON_FAULT(page_fault_kernel, x86_exceptions_page_fault_kernel)
#endif

struct contended {
	struct head head;
	u64 lock_addr;
	u32 flags;
} PACKED;

#define ON_CONTENTION(name) \
	SEC("tp_btf/" #name) \
	int on_##name(u64 *args) \
	{ \
		BEGIN(record, contended, name); \
		record->lock_addr = args[0]; \
		record->flags = args[1]; \
		end(record); \
		return 0; \
	}

ON_CONTENTION(contention_begin)
ON_CONTENTION(contention_end)
