./work > truth.csv & P=$!
sleep 0.3
F="comm == \"reader\" || comm == \"writer\" || comm == \"feeder\" || comm == \"submitter\""
perf record -k CLOCK_MONOTONIC -a -o wq.data -e 'sched:sched_switch,sched:sched_waking,sched:sched_wakeup_new,workqueue:workqueue_queue_work,workqueue:workqueue_execute_start,workqueue:workqueue_execute_end,io_uring:*,irq:irq_handler_entry,irq:irq_handler_exit,irq:softirq_entry,irq:softirq_exit,timer:hrtimer_expire_entry,timer:hrtimer_expire_exit,timer:timer_expire_entry,timer:timer_expire_exit' -e raw_syscalls:sys_enter --filter "$F" -e raw_syscalls:sys_exit --filter "$F" -- sh -c "sleep 0.1; kill -CONT $P; timeout 5 tail --pid=$P -f /dev/null" 2>perf.log </dev/null
