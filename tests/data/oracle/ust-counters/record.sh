#!/bin/sh
# record.sh TRACEBRAID DIRECTORY: the recording, in an empty directory: of user space with counters of threads by LTTng-UST (whose session
# daemon runs), of the kernel by the program tracebraid.
set -e
here=$(cd "$(dirname "$0")" && pwd)
cd "$2"
cc -O1 -pthread -o faults "$here/faults.c" -llttng-ust
lttng create ust-counters --output="$PWD/ust-counters"
lttng enable-event --userspace 'lttng_ust_tracef:*'
lttng add-context --userspace --type=vtid --type=perf:thread:page-fault --type=perf:thread:context-switches
lttng start
"$1" record --kernel sched,irq,timer --syscalls none --no-state-dump -o recorded -- ./faults >truth
lttng destroy ust-counters
mv recorded/kernel ust-counters/kernel
# Removes the properties of the machine; both traces are from one host.
"$here/../../../../docs/case-studies/common/anonymous" ust-counters kept/ust-counters faults
sed -i 's/hostname = "study"/hostname = "vm"/' kept/ust-counters/kernel/metadata
cp -r ust-counters/ust kept/ust-counters/ust
cp truth kept/ust-counters/truth
