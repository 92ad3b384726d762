/* Whose system calls and page faults are wanted. */
#pragma once

#include "running.h"

/* What is set before loading. */
struct options {
	/* Only those of the processes in `targets`, and of their descendants. */
	u8 only_targets;
	/* `targets` is kept: for `only_targets`, or to find the descendants of a command that still run. */
	u8 follows;
	/* Forks and ends are followed without being recorded. */
	u8 hides_forks;
	/* The end of a request to io_uring is told by its entry in the ring (Linux 6.17), not by values. */
	u8 completes_by_entry;
};

const volatile struct options options SEC(".rodata.options") = {};

struct {
	MAP_INT(type, MAP_HASH);
	MAP_INT(max_entries, 65536);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u8);
} targets SEC(".maps");

/*
 * Processes by their number in the recorder's PID namespace, with that of the initial one. The kernel's perf events and
 * files such as /tmp/perf-PID.map have the former, event records the latter, and the process may have ended when they are
 * read. Empty if both are the same.
 */
struct {
	MAP_INT(type, MAP_LRU_HASH);
	MAP_INT(max_entries, 16384);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} numbers SEC(".maps");

/* Depth of the recorder's PID namespace, which `list_tasks` sets; 0 for the initial one. */
volatile u32 own_level SEC(".data.level") = 0;

INLINE bool is_target(u32 process)
{
	return !options.only_targets || bpf_map_lookup_elem(&targets, &process);
}

INLINE bool current_is_target(void)
{
	return !options.only_targets || is_target(bpf_get_current_pid_tgid() >> 32);
}

/* What a target forks is one too. */
INLINE void follow_fork(u32 parent, u32 child)
{
	u8 yes = 1;

	if (!options.follows || parent == child || !bpf_map_lookup_elem(&targets, &parent))
		return;
	if (bpf_map_update_elem(&targets, &child, &yes, BPF_ANY))
		__sync_fetch_and_add(&lost[UNFOLLOWED], 1);
}

/* Its number may become another process's. */
INLINE void follow_end(u32 process)
{
	if (options.follows)
		bpf_map_delete_elem(&targets, &process);
}
