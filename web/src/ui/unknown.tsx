/** Messages about what the traces do not show, and how to record it. */

import { RECORD } from '../verdict';

/** Shown if the trace does not record when threads ran. */
export function WithoutTimes() {
  return (
    <p class="hint" data-unknown>
      Where the time goes is unknown: the trace has no scheduling events (sched_switch) for these
      executions. To record them: <code>{RECORD}</code>. With LTTng, enable the kernel events
      sched_switch, sched_waking, sched_wakeup_new, irq_handler_*, irq_softirq_* and all system
      calls.
    </p>
  );
}
