/* Selection of processes for system calls and page faults. */
#pragma once

#include "running.h"

/* Options, set before loading. */
struct options {
	/* Records only the processes in `targets`, and their descendants. */
	u8 only_targets;
	/* `targets` is maintained: for `only_targets`, or to find the descendants of a command that still
	 * run. */
	u8 follows;
	/* Forks and exits are followed without being recorded. */
	u8 hides_forks;
	/* The end of an io_uring request is reported as an entry of the ring (Linux 6.17), not as separate
	 * values. */
	u8 completes_by_entry;
};

const volatile struct options options SEC(".rodata.options") = {};

struct {
	MAP_INT(type, MAP_HASH);
	MAP_INT(max_entries, 65536);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u8);
} targets SEC(".maps");

/* Ids of processes in the initial PID namespace, by their ids in the recorder's namespace. The
 * kernel's perf events and files such as /tmp/perf-PID.map contain the latter, event records the
 * former, and the process may have ended when they are read. Empty if both namespaces are the same.
 */
struct {
	MAP_INT(type, MAP_LRU_HASH);
	MAP_INT(max_entries, 16384);
	MAP_TYPE(key, u32);
	MAP_TYPE(value, u32);
} numbers SEC(".maps");

/* Level of the recorder's PID namespace, set by `list_tasks`; 0 for the initial one. */
volatile u32 own_level SEC(".data.level") = 0;

INLINE bool is_target(u32 process)
{
	return !options.only_targets || bpf_map_lookup_elem(&targets, &process);
}

INLINE bool current_is_target(void)
{
	return !options.only_targets || is_target(bpf_get_current_pid_tgid() >> 32);
}

/* Children of a target are targets, too. */
INLINE void follow_fork(u32 parent, u32 child)
{
	u8 yes = 1;

	if (!options.follows || parent == child || !bpf_map_lookup_elem(&targets, &parent))
		return;
	if (bpf_map_update_elem(&targets, &child, &yes, BPF_ANY))
		__sync_fetch_and_add(&lost[UNFOLLOWED], 1);
}

/* The id may be reused by another process. */
INLINE void follow_end(u32 process)
{
	if (options.follows)
		bpf_map_delete_elem(&targets, &process);
}
