/* Work queues of the kernel. */
#pragma once

#include "sched.h"

struct work_queued {
	struct head head;
	u64 work;
	u64 function;
	char workqueue[24];
	s32 req_cpu;
} PACKED;

SEC("tp_btf/workqueue_queue_work")
int on_workqueue_queue_work(u64 *args)
{
	s32 cpu = args[0];
	struct pool_workqueue *pool = (void *)args[1];
	struct work_struct *work = (void *)args[2];

	BEGIN(record, work_queued, workqueue_queue_work);
	record->work = (u64)work;
	record->function = (u64)work->func;
	bpf_probe_read_kernel(record->workqueue, sizeof(record->workqueue), pool->wq->name);
	record->req_cpu = cpu;
	end(record);
	return 0;
}

struct work_begun {
	struct head head;
	u64 work;
	u64 function;
} PACKED;

SEC("tp_btf/workqueue_execute_start")
int on_workqueue_execute_start(u64 *args)
{
	struct work_struct *work = (void *)args[0];

	BEGIN(record, work_begun, workqueue_execute_start);
	record->work = (u64)work;
	record->function = (u64)work->func;
	end(record);
	return 0;
}

/* Contains only the address, since the work item may have been freed. */
struct work_ended {
	struct head head;
	u64 work;
} PACKED;

SEC("tp_btf/workqueue_execute_end")
int on_workqueue_execute_end(u64 *args)
{
	BEGIN(record, work_ended, workqueue_execute_end);
	record->work = args[0];
	end(record);
	return 0;
}
