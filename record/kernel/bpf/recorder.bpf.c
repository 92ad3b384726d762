/* The recorder's part in the kernel: a small program at each tracepoint, which writes what it sees in the
 * way of the event classes in events.tsdl, text padded. See ring.h for how records leave the kernel. */
#include "kinds.h"

#include "sched.h"
#include "tasks.h"
#include "irq.h"
#include "block.h"
#include "net.h"
#include "memory.h"
#include "uring.h"
#include "work.h"
#include "syscalls.h"
#include "waits.h"
#include "chosen.h"

/* Some helpers are open to programs under this licence only. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
