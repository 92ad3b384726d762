/* The fields of kernel types that are read. The loader relocates them to the running kernel
 * (CO-RE). */
#pragma once

#include "bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info {
	u32 status;
	u32 cpu;
};

struct ns_common {
	u32 inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	s32 nr;
	struct pid_namespace *ns;
};

struct pid {
	u32 level;
	struct upid numbers[1];
};

struct thread_struct {
	/* Address of the thread control block of the C library (x86). */
	u64 fsbase;
};

struct mm_struct {
	/* The initial stack pointer of the program. */
	u64 start_stack;
};

/* State of a thread that has hit a uprobe. */
struct uprobe_task {
	/* Number of nested calls whose return address the kernel has replaced. */
	u32 depth;
};

struct vm_area_struct {
	u64 vm_start;
	u64 vm_end;
};

struct task_struct {
	struct thread_info thread_info;
	s32 exit_state;
	s32 pid;
	s32 tgid;
	s32 prio;
	s32 static_prio;
	u32 flags;
	u32 __state;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	char comm[16];
	/* Null for kernel threads, and for threads that have ended. */
	struct mm_struct *mm;
	struct uprobe_task *utask;
	/* Address and size of the alternate signal stack. */
	u64 sas_ss_sp;
	u64 sas_ss_size;
	struct thread_struct thread;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct linux_binprm {
	const char *filename;
};

struct irqaction {
	const char *name;
};

struct work_struct {
	void *func;
};

struct workqueue_struct {
	char name[24];
};

struct pool_workqueue {
	struct workqueue_struct *wq;
};

struct io_ring_ctx {
	u32 flags;
};

struct io_cqe {
	u64 user_data;
};

struct io_kiocb {
	u8 opcode;
	u64 flags;
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
};

struct io_uring_cqe {
	u64 user_data;
	s32 res;
	u32 flags;
};

struct timerqueue_node {
	s64 expires;
};

struct hrtimer {
	struct timerqueue_node node;
	s64 _softexpires;
	void *function;
};

struct timer_list {
	u64 expires;
	void *function;
	u32 flags;
};

struct block_device {
	u32 bd_dev;
};

struct gendisk {
	struct block_device *part0;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	u32 __data_len;
	u64 __sector;
};

struct net_device {
	char name[16];
};

struct sk_buff {
	struct net_device *dev;
	u32 len;
	u16 protocol;
	u16 transport_header;
	u16 network_header;
	unsigned char *head;
	unsigned char *data;
};

#if defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 regs[31];
	u64 orig_x0;
	s32 syscallno;
};
#else
struct pt_regs {
	u64 r15;
	u64 r14;
	u64 r13;
	u64 r12;
	u64 bp;
	u64 bx;
	u64 r11;
	u64 r10;
	u64 r9;
	u64 r8;
	u64 ax;
	u64 cx;
	u64 dx;
	u64 si;
	u64 di;
	u64 orig_ax;
	u64 ip;
	u64 sp;
};
#endif

struct in6_addr {
	u8 bytes[16];
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	u8 skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
};

#pragma clang attribute pop
