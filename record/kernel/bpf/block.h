/* Requests to block devices. */
#pragma once

#include "sched.h"

/* Operations and flags of a request (include/linux/blk_types.h). */
#define OP_MASK 0xff
#define OP_READ 0
#define OP_WRITE 1
#define OP_FLUSH 2
#define OP_DISCARD 3
#define OP_SECURE_ERASE 5
#define OP_WRITE_ZEROES 9
#define REQUEST_SYNC (1 << 11)
#define REQUEST_META (1 << 12)
#define REQUEST_FUA (1 << 17)
#define REQUEST_PREFLUSH (1 << 18)
#define REQUEST_AHEAD (1 << 19)

/* Bits of `rwbs`, as lttng-modules defines them. */
#define RWBS_WRITE (1 << 0)
#define RWBS_DISCARD (1 << 1)
#define RWBS_READ (1 << 2)
#define RWBS_AHEAD (1 << 3)
#define RWBS_SYNC (1 << 5)
#define RWBS_META (1 << 6)
#define RWBS_SECURE (1 << 7)
#define RWBS_FLUSH (1 << 8)
#define RWBS_FUA (1 << 9)
#define RWBS_PREFLUSH (1 << 10)

#define SECTOR_SHIFT 9

INLINE u32 operation_bits(u32 operation)
{
	switch (operation) {
	case OP_READ:
		return RWBS_READ;
	case OP_WRITE:
	case OP_WRITE_ZEROES:
		return RWBS_WRITE;
	case OP_FLUSH:
		return RWBS_FLUSH;
	case OP_DISCARD:
		return RWBS_DISCARD;
	case OP_SECURE_ERASE:
		return RWBS_DISCARD | RWBS_SECURE;
	default:
		return 0;
	}
}

INLINE u32 rwbs_of(u32 flags)
{
	u32 bits = operation_bits(flags & OP_MASK);

	if (flags & REQUEST_SYNC)
		bits |= RWBS_SYNC;
	if (flags & REQUEST_META)
		bits |= RWBS_META;
	if (flags & REQUEST_FUA)
		bits |= RWBS_FUA;
	if (flags & REQUEST_PREFLUSH)
		bits |= RWBS_PREFLUSH;
	if (flags & REQUEST_AHEAD)
		bits |= RWBS_AHEAD;
	return bits;
}

INLINE u32 device_of(struct request *request)
{
	struct gendisk *disk = request->q ? request->q->disk : 0;

	return disk && disk->part0 ? disk->part0->bd_dev : 0;
}

struct requested {
	struct head head;
	u32 dev;
	u64 sector;
	u32 nr_sector;
	u32 bytes;
	s32 tid;
	u32 rwbs;
	struct comm comm;
} PACKED;

#define ON_REQUEST(name) \
	SEC("tp_btf/" #name) \
	int on_##name(u64 *args) \
	{ \
		struct request *request = (void *)args[0]; \
		struct task_struct *task = bpf_get_current_task_btf(); \
		BEGIN_OF(task, record, requested, name, 0); \
		record->dev = device_of(request); \
		record->sector = request->__sector; \
		record->nr_sector = request->__data_len >> SECTOR_SHIFT; \
		record->bytes = request->__data_len; \
		record->tid = task->pid; \
		record->rwbs = rwbs_of(request->cmd_flags); \
		copy_comm(&record->comm, task); \
		end(record); \
		return 0; \
	}

ON_REQUEST(block_rq_insert)
ON_REQUEST(block_rq_issue)

struct completed {
	struct head head;
	u32 dev;
	u64 sector;
	u32 nr_sector;
	s32 error;
	u32 rwbs;
} PACKED;

/* By status of the block layer, the corresponding errno (block/blk-core.c); others are EIO. */
const volatile u8 errors[16] = {
	0, 95 /* EOPNOTSUPP */, 110 /* ETIMEDOUT */, 28 /* ENOSPC */, 67 /* ENOLINK */, 121 /* EREMOTEIO */,
	52 /* EBADE */, 61 /* ENODATA */, 84 /* EILSEQ */, 12 /* ENOMEM */, 5 /* EIO */, 5, 11 /* EAGAIN */,
	16 /* EBUSY */, 75 /* EOVERFLOW */, 6 /* ENXIO */,
};

INLINE s32 error_of(u64 status)
{
	/* Keeps the compiler from emitting a comparison from which the verifier cannot derive the bound. */
	asm volatile("" : "+r"(status));
	return status < sizeof(errors) ? -(s32)errors[status] : -5;
}

SEC("tp_btf/block_rq_complete")
int on_block_rq_complete(u64 *args)
{
	struct request *request = (void *)args[0];

	BEGIN(record, completed, block_rq_complete);
	record->dev = device_of(request);
	record->sector = request->__sector;
	record->nr_sector = (u32)args[2] >> SECTOR_SHIFT;
	record->error = error_of((u8)args[1]);
	record->rwbs = rwbs_of(request->cmd_flags);
	end(record);
	return 0;
}
