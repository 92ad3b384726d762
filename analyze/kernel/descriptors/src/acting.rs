//! Acts that decide the process and the table of descriptors of each thread.

use std::collections::BTreeMap;

use tracebraid_follow::ThreadKey;

use crate::belongings::{Act, Belonging, Effect, Holder, Unclear, Users};
use crate::earlier::Earlier;
use crate::members::Members;

/// [`Belongings`](crate::belongings::Belongings), borrowed to apply acts.
pub(crate) struct Acting<'a> {
    pub(crate) threads: &'a mut Members,
    pub(crate) earlier: &'a mut Earlier,
    pub(crate) addresses: &'a mut BTreeMap<u32, BTreeMap<i64, i32>>,
    pub(crate) numbered: &'a mut i32,
    /// Effects of the acts, in order.
    pub(crate) effects: &'a mut Vec<Effect>,
    /// Returns true if no descriptor in a table is known to be open. Without it, an act that
    /// depends on that is [`Unclear`].
    pub(crate) is_empty: Option<&'a dyn Fn(ThreadKey) -> bool>,
}

impl Acting<'_> {
    /// Applies an act and appends its effects.
    pub(crate) fn act(&mut self, thread: ThreadKey, time: i64, act: Act) -> Result<(), Unclear> {
        match act {
            Act::Touch => self.touched(thread),
            Act::Cloning(sharing) => self.threads.get(thread).cloning = sharing,
            Act::Unshare => {
                self.unshare(thread, time);
            }
            Act::Fork {
                child,
                child_pid,
                parent_pid,
            } => {
                if let Some(pid) = parent_pid {
                    self.member(thread, time, pid);
                }
                self.fork(thread, time, child, child_pid);
            }
            Act::Exec => self.exec(thread, time),
            Act::End => self.exit(thread),
            Act::Member { pid, table } => {
                if let Some(address) = table {
                    self.table(thread.with(pid), time, address)?;
                }
                self.member(thread, time, pid);
            }
            Act::Holds(holder) => self.holds(thread.trace, holder),
        }
        Ok(())
    }

    fn belonging(&self, thread: ThreadKey) -> Belonging {
        self.threads.belonging(thread)
    }

    /// Current table of a process.
    fn table_of_process(&self, process: ThreadKey) -> ThreadKey {
        let first = self.belonging(process);
        // The id may have been that of a thread of another process.
        if first.pid == process.tid {
            process.with(first.table)
        } else {
            process
        }
    }

    /// Records that a thread changes the contents of its table, now or later. One call for each
    /// thread is enough.
    pub(crate) fn touched(&mut self, thread: ThreadKey) {
        self.set_touched(thread);
        let table = self.belonging(thread).table;
        if table != thread.tid {
            self.touch(thread.with(table));
        }
    }

    fn touch(&mut self, table: ThreadKey) {
        // Tables whose numbers are not ids of threads are never looked up, and there may be many of
        // them.
        if table.tid >= ThreadKey::UNKNOWN {
            self.set_touched(table);
        }
    }

    fn set_touched(&mut self, table: ThreadKey) {
        // Without the test, `get` could copy a page of threads for nothing.
        if self.is_untouched(table) {
            self.threads.get(table).is_touched = true;
        }
    }

    /// True if the contents of the table, as far as known, were all copied from another table.
    pub(crate) fn is_untouched(&self, table: ThreadKey) -> bool {
        let entry = self.threads.find(table);
        entry.is_none_or(|entry| !entry.is_touched)
    }

    /// Returns a new table that no thread has.
    fn unused(&mut self, thread: ThreadKey) -> ThreadKey {
        *self.numbered = self.numbered.saturating_add(1);
        // Negative numbers are not ids of threads; the first negative number stands for all unknown
        // threads.
        thread.with(ThreadKey::UNKNOWN - *self.numbered)
    }

    fn belongs(&mut self, thread: ThreadKey, belonging: Belonging) {
        let entry = self.threads.get(thread);
        let is_touched = entry.is_touched;
        if let Some(before) = entry.belonging.replace(belonging) {
            self.earlier
                .push(&mut entry.before, before, belonging.since);
        }
        if is_touched && belonging.table != thread.tid {
            self.touch(thread.with(belonging.table));
        }
        self.effects.push(Effect::Belongs(thread, belonging));
    }

    fn copy(&mut self, from: ThreadKey, to: ThreadKey) {
        if let Some(entry) = self.threads.find_mut(to) {
            entry.users = Users::default();
        }
        self.effects.push(Effect::Copied { from, to });
    }

    fn unshare(&mut self, thread: ThreadKey, time: i64) -> ThreadKey {
        let Belonging { pid, table, .. } = self.belonging(thread);
        let old = thread.with(table);
        let others = self.threads.find(old).map_or(0, |entry| entry.users.others);
        if others == 0 {
            return old;
        }
        let new = self.unused(thread);
        self.copy(old, new);
        self.belongs(thread, Belonging::new(time, pid, new.tid));
        let left = &mut self.threads.get(old).users;
        left.others = left.others.saturating_sub(1);
        left.shared &= left.others > 0;
        left.lent |= old == thread;
        new
    }

    fn exec(&mut self, thread: ThreadKey, time: i64) {
        let mut table = thread.with(self.belonging(thread).table);
        if self
            .threads
            .find(table)
            .is_some_and(|entry| entry.users.shared)
        {
            table = self.unshare(thread, time);
        }
        self.effects.push(Effect::Executed(table));
    }

    fn fork(&mut self, parent: ThreadKey, time: i64, child: i32, child_pid: Option<i32>) {
        let child = parent.with(child);
        let maker = self.threads.get(parent);
        let from = maker.belonging.unwrap_or_else(|| Belonging::alone(parent));
        // The recorded call may have failed, and the record of the call that created the thread may
        // be lost.
        let how = maker.cloning.take();
        let how = how.filter(|how| child_pid.is_none_or(|pid| (pid != child.tid) == how.process));
        let same_process = how.is_some_and(|how| how.process);
        let pid = child_pid.unwrap_or(if same_process { from.pid } else { child.tid });
        if how.map_or(pid != child.tid, |how| how.files) {
            let table = if how.is_some() || pid == from.pid {
                parent.with(from.table)
            } else {
                self.table_of_process(parent.with(pid))
            };
            self.belongs(child, Belonging::new(time, pid, table.tid));
            let users = &mut self.threads.get(table).users;
            users.others += 1;
            users.shared |= pid != from.pid;
        } else {
            let is_lent = self
                .threads
                .find(child)
                .is_some_and(|entry| entry.users.lent);
            let table = if is_lent { self.unused(child) } else { child };
            let is_told = how.is_some() || child_pid.is_some();
            let belonging = Belonging {
                maker: (!is_told).then_some((from.pid, from.table)),
                ..Belonging::new(time, pid, table.tid)
            };
            self.belongs(child, belonging);
            self.copy(parent.with(from.table), table);
        }
        // An earlier thread with this id may have changed a table that another thread has.
        self.touch(child);
    }

    fn exit(&mut self, thread: ThreadKey) {
        let table = thread.with(self.belonging(thread).table);
        if let Some(entry) = self.threads.find_mut(table) {
            let users = &mut entry.users;
            if users.others > 0 {
                users.others -= 1;
                users.shared &= users.others > 0;
                return;
            }
            users.lent = false;
        }
        self.effects.push(Effect::Closed(table));
    }

    fn member(&mut self, thread: ThreadKey, time: i64, pid: i32) {
        let before = self.belonging(thread);
        if before.pid == pid {
            return;
        }
        let table = match before.maker {
            Some((process, table)) if process == pid => thread.with(table),
            _ => self.table_of_process(thread.with(pid)),
        };
        self.belongs(thread, Belonging::new(time, pid, table.tid));
        if before.table != thread.tid {
            return;
        }
        self.effects.push(Effect::Moved {
            from: thread,
            to: table,
            since: before.since,
        });
        self.touch(table);
        self.threads.get(table).users.others += 1;
    }

    /// State dump: the table of the process is at `address`. If the process has no recorded
    /// belonging or descriptors, and another process has the same address, both share the table.
    fn table(&mut self, process: ThreadKey, time: i64, address: i64) -> Result<(), Unclear> {
        let has_belonging = self
            .threads
            .find(process)
            .is_some_and(|entry| entry.belonging.is_some());
        let addresses = self.addresses.entry(process.trace).or_default();
        let first = *addresses.entry(address).or_insert(process.tid);
        if first == process.tid {
            return Ok(());
        }
        let is_empty = match self.is_empty {
            _ if has_belonging => false,
            Some(is_empty) => is_empty(process),
            None if self.is_untouched(process) => true,
            None => return Err(Unclear),
        };
        if !is_empty {
            let addresses = self.addresses.entry(process.trace).or_default();
            addresses.insert(address, process.tid);
            return Ok(());
        }
        let table = self.table_of_process(process.with(first));
        self.belongs(process, Belonging::new(time, process.tid, table.tid));
        if table != process {
            self.effects.push(Effect::Left(process));
        }
        self.touch(table);
        let users = &mut self.threads.get(table).users;
        users.others += 1;
        users.shared = true;
        Ok(())
    }

    fn holds(&mut self, trace: u32, holder: Holder) {
        let pid = match holder {
            Holder::Process(pid) => Some(pid),
            Holder::Table(address) => self
                .addresses
                .get(&trace)
                .and_then(|processes| processes.get(&address).copied()),
        };
        if let Some(pid) = pid {
            let table = self.table_of_process(ThreadKey { trace, tid: pid });
            self.touch(table);
            self.effects.push(Effect::Held(table));
        }
    }
}
