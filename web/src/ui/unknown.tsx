/** Messages about what the traces do not show, and how to record it. */

import { RECORD, WITHOUT_TIMES } from '../verdict';

/** Shown if the trace does not record when threads ran. */
export function WithoutTimes() {
  return (
    <p class="hint" data-unknown>
      {WITHOUT_TIMES} Record them with <code>{RECORD}</code>, or with LTTng: enable the kernel
      events sched_switch, sched_waking, sched_wakeup_new, irq_handler_*, irq_softirq_* and all
      system calls.
    </p>
  );
}
