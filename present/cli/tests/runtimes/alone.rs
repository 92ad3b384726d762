//! Tests that need the machine for themselves: a thread that the kernel preempts between its work and
//! its wait seems to run meanwhile.

use crate::openmp::compared_with_two_threads;
use crate::truth::waiters_do_not_run;

#[test]
fn waiting_tasks_of_openmp_do_not_run() {
    for arguments in [["loops", "60"], ["critical", "20"], ["locks", "20"]] {
        let Some(truth) = compared_with_two_threads(&arguments) else {
            return;
        };
        waiters_do_not_run(&truth.recorded, &truth.segments);
    }
}
