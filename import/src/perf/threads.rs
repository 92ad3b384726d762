//! Names of threads, according to the records read so far.

use std::collections::HashMap;
use std::sync::Arc;

/// Names by thread.
#[derive(Debug, Default)]
pub(crate) struct Threads(HashMap<i32, Arc<[u8]>>);

impl Threads {
    /// Sets the name of a thread.
    pub(crate) fn name(&mut self, tid: i32, name: &[u8]) {
        self.0.insert(tid, name.into());
    }

    /// Adds a thread, which inherits the name of its parent.
    pub(crate) fn fork(&mut self, tid: i32, parent: i32) {
        if let Some(name) = self.0.get(&parent).cloned()
            && tid != parent
        {
            self.0.insert(tid, name);
        }
    }

    /// The name of a thread; empty if unknown. Idle threads have the name that perf uses.
    pub(crate) fn of(&self, tid: i32) -> Arc<[u8]> {
        match (self.0.get(&tid), tid) {
            (_, 0) => b"swapper"[..].into(),
            (Some(name), _) => name.clone(),
            (None, _) => Arc::default(),
        }
    }
}
