/* Requests to io_uring. */
#pragma once

#include "running.h"
#include "targets.h"

/* A kernel thread consumes submissions (include/uapi/linux/io_uring.h). */
#define SETUP_SQPOLL (1 << 1)

struct ring_submitted {
	struct head head;
	u64 ctx;
	u64 req;
	u64 user_data;
	u8 opcode;
	u64 flags;
	u8 sq_thread;
} PACKED;

SEC("tp_btf/io_uring_submit_req")
int on_io_uring_submit_req(u64 *args)
{
	struct io_kiocb *request = (void *)args[0];

	BEGIN(record, ring_submitted, io_uring_submit_req);
	record->ctx = (u64)request->ctx;
	record->req = (u64)request;
	record->user_data = request->cqe.user_data;
	record->opcode = request->opcode;
	record->flags = request->flags;
	record->sq_thread = !!(request->ctx->flags & SETUP_SQPOLL);
	end(record);
	return 0;
}

struct ring_queued {
	struct head head;
	u64 ctx;
	u64 req;
	u64 user_data;
	u8 opcode;
	u64 flags;
	s32 rw;
} PACKED;

SEC("tp_btf/io_uring_queue_async_work")
int on_io_uring_queue_async_work(u64 *args)
{
	struct io_kiocb *request = (void *)args[0];

	BEGIN(record, ring_queued, io_uring_queue_async_work);
	record->ctx = (u64)request->ctx;
	record->req = (u64)request;
	record->user_data = request->cqe.user_data;
	record->opcode = request->opcode;
	record->flags = request->flags;
	record->rw = args[1];
	end(record);
	return 0;
}

struct ring_completed {
	struct head head;
	u64 ctx;
	u64 req;
	u64 user_data;
	s32 res;
	u32 cflags;
} PACKED;

SEC("tp_btf/io_uring_complete")
int on_io_uring_complete(u64 *args)
{
	BEGIN(record, ring_completed, io_uring_complete);
	record->ctx = args[0];
	record->req = args[1];
	/* The option is constant to the verifier, which then checks only the arguments that this kernel
	 * has. */
	if (options.completes_by_entry) {
		struct io_uring_cqe *entry = (void *)args[2];

		record->user_data = entry->user_data;
		record->res = entry->res;
		record->cflags = entry->flags;
	} else {
		record->user_data = args[2];
		record->res = args[3];
		record->cflags = args[4];
	}
	end(record);
	return 0;
}
