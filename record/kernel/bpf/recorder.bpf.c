/* The recorder's part in the kernel: a small program at each tracepoint, which writes its arguments
 * in the layout of the event classes in events.tsdl, with padded text. ring.h describes how records
 * leave the kernel. */
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

/* Some helpers are restricted to programs under this licence. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";
