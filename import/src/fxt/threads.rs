//! Which LWP recorded: libfxt stores threads, by address or by kernel id.

use std::collections::HashMap;

use super::codes::Meaning;
use super::records::Record;

/// Threads of a program and the LWPs that run them.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// Thread id of the LWP that a thread was last on.
    lwps: HashMap<u64, i32>,
    /// Number of ids that were given.
    given: i32,
}

impl Threads {
    /// Thread id of the LWP that wrote a record: its kernel id if the trace contains it, otherwise
    /// its number in the order of appearance. Records must come in the order of time.
    pub(super) fn lwp_of(&mut self, record: &Record, meaning: Meaning) -> i32 {
        // StarPU stores the kernel's id of the thread, Marcel the address of its first thread.
        let told = record.params.get(1).and_then(|id| i32::try_from(*id).ok());
        if let (Meaning::Lwp, Some(id @ 1..)) = (meaning, told) {
            self.lwps.insert(record.thread, id);
        }
        let lwp = match self.lwps.get(&record.thread) {
            Some(lwp) => *lwp,
            None => self.give(record.thread),
        };
        if meaning == Meaning::Switch
            && let Some(next) = record.params.first()
        {
            self.lwps.insert(*next, lwp);
        }
        lwp
    }

    fn give(&mut self, thread: u64) -> i32 {
        self.given = self.given.saturating_add(1);
        let id = match i32::try_from(thread) {
            Ok(id @ 1..) => id,
            _ => self.given,
        };
        self.lwps.insert(thread, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(thread: u64, params: &[u64]) -> Record {
        Record {
            time: 0,
            thread,
            cpu: 0,
            code: 0,
            params: params.to_vec(),
            offset: 0,
        }
    }

    #[test]
    fn a_thread_is_on_the_lwp_that_switched_to_it() {
        let (first, second) = (1 << 40, 2 << 40);
        let mut threads = Threads::default();
        assert_eq!(threads.lwp_of(&record(first, &[0]), Meaning::Lwp), 1);
        assert_eq!(threads.lwp_of(&record(second, &[1]), Meaning::Lwp), 2);
        assert_eq!(
            threads.lwp_of(&record(first, &[7 << 40]), Meaning::Switch),
            1
        );
        assert_eq!(threads.lwp_of(&record(7 << 40, &[]), Meaning::Other), 1);
        assert_eq!(
            threads.lwp_of(&record(second, &[7 << 40]), Meaning::Switch),
            2
        );
        assert_eq!(threads.lwp_of(&record(7 << 40, &[]), Meaning::Other), 2);
    }

    #[test]
    fn the_kernels_id_is_kept_where_it_is_known() {
        let mut threads = Threads::default();
        let lwp = record(1 << 40, &[0, 4711]);
        assert_eq!(threads.lwp_of(&lwp, Meaning::Lwp), 4711);
        assert_eq!(threads.lwp_of(&record(1 << 40, &[]), Meaning::Other), 4711);
        assert_eq!(threads.lwp_of(&record(99, &[]), Meaning::Other), 99);
    }
}
