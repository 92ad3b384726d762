//! Which process each thread belongs to, and which table of descriptors it has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Table, ThreadKey};

use crate::change::Sharing;
use crate::shared::Shared;

/// Which process a thread belongs to, and which table it has, from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Belonging {
    pub(crate) since: i64,
    pub(crate) pid: i32,
    pub(crate) table: i32,
    /// Process and table of the thread that made it, as long as nothing tells whether it has the same.
    maker: Option<(i32, i32)>,
}

impl Belonging {
    /// That of a thread of which nothing is known: it is alone in its process.
    pub(crate) fn alone(thread: ThreadKey) -> Belonging {
        Belonging {
            since: i64::MIN,
            pid: thread.tid,
            table: thread.tid,
            maker: None,
        }
    }
}

/// What is known of a thread.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Person {
    belonging: Option<Belonging>,
    /// What it is about to make.
    cloning: Option<Sharing>,
    /// What is in the table with its number may be known by something else than a copy of another one.
    is_touched: bool,
}

/// Who has a table.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Users {
    /// Threads that are known to have it, but for one.
    others: u32,
    /// Some of them are of other processes.
    shared: bool,
    /// The process whose id it has as its own has another one by now.
    lent: bool,
}

/// Something that decides which thread has which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// What is in the thread's table changes, perhaps. Looking ahead needs one before each thread's first change.
    Touch,
    /// The thread is about to make another one. Nothing where the trace does not tell how.
    Cloning(Option<Sharing>),
    /// The thread gets a copy of its table for itself, if others have it too.
    Unshare,
    /// The thread makes another one. If nothing tells its process, it is taken for a process of its own.
    Fork {
        /// Its id.
        child: i32,
        /// Its process, if that is told.
        child_pid: Option<i32>,
        /// The process of the thread that makes it, if that is told.
        parent_pid: Option<i32>,
    },
    /// The thread executes a program: what its process shared with other processes it shares no more.
    Exec,
    /// The thread ends. With the last thread that has a table everything in it is closed.
    End,
    /// The thread turns out to belong to a process, and that to have its table at an address, as a state dump tells.
    Member {
        /// The process.
        pid: i32,
        /// Address of its table.
        table: Option<i64>,
    },
    /// State dump: a process, or whoever has the table, has a descriptor.
    Holds(Holder),
}

/// Who has a descriptor, as a state dump tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holder {
    /// That process.
    Process(i32),
    /// Whoever has the table at that address.
    Table(i64),
}

/// What comes of an [`Act`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A thread belongs to a process, and has a table, from now on.
    Belongs(ThreadKey, Belonging),
    /// A table becomes a copy of another one.
    Copied { from: ThreadKey, to: ThreadKey },
    /// What is to be closed at exec is closed in that table.
    Executed(ThreadKey),
    /// Everything in that table is closed.
    Closed(ThreadKey),
    /// What a thread seemed to have alone, since that time, is its process's.
    Moved {
        from: ThreadKey,
        to: ThreadKey,
        since: i64,
    },
    /// Nobody has that table any more, which was never filled.
    Left(ThreadKey),
    /// The descriptor of a state dump is in that table.
    Held(ThreadKey),
}

/// It cannot be said what comes of an [`Act`] without knowing what is in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unclear;

/// Threads; who is not in it is alone in its process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Members(Table<Person>);

impl Members {
    /// What a thread belongs to.
    pub(crate) fn belonging(&self, thread: ThreadKey) -> Belonging {
        let known = self.0.find(thread).and_then(|person| person.belonging);
        known.unwrap_or_else(|| Belonging::alone(thread))
    }
}

/// Which process each thread belongs to, and which table it has. Takes a few dozen bytes a thread that was met.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Belongings {
    pub(crate) people: Shared<Members>,
    /// What was before, by thread, in the order of time.
    earlier: Table<Vec<Belonging>>,
    users: Table<Users>,
    /// Processes by trace and address of their table, in the state dump.
    addresses: BTreeMap<u32, BTreeMap<i64, i32>>,
    /// How many tables have negative numbers.
    numbered: i32,
    /// Entries of `earlier`, and how many there were after the last forgetting.
    entries: usize,
    kept: usize,
}

impl Belongings {
    /// Whether it can have come about by acts: nothing in it overflows then.
    pub(crate) fn is_sound(&self) -> bool {
        const MOST: usize = 1 << 30;
        let are_few = |(_, users): (_, &Users)| (users.others as usize) < MOST;
        self.people.0.is_sound()
            && self.earlier.is_sound()
            && self.users.is_sound()
            && self.entries.max(self.kept) < MOST
            && (0..MOST as i32).contains(&self.numbered)
            && self.users.entries().all(are_few)
    }

    /// What a thread belongs to now.
    pub(crate) fn belonging(&self, thread: ThreadKey) -> Belonging {
        self.people.belonging(thread)
    }

    /// The table of a thread at a time, and when it gets another one.
    pub(crate) fn table_at(&self, thread: ThreadKey, time: i64) -> (ThreadKey, Option<i64>) {
        let Some(now) = self.people.0.find(thread).and_then(|person| person.belonging) else {
            return (thread, None);
        };
        if now.since <= time {
            return (thread.with(now.table), None);
        }
        let earlier = self.earlier.find(thread).map(Vec::as_slice).unwrap_or_default();
        let after = earlier.partition_point(|belonging| belonging.since <= time);
        let table = after.checked_sub(1).and_then(|at| earlier.get(at));
        let next = earlier.get(after).unwrap_or(&now);
        let table = table.map_or(thread.tid, |belonging| belonging.table);
        (thread.with(table), Some(next.since))
    }

    /// Whether a thread had that table at all times after one.
    pub(crate) fn had_since(&self, thread: ThreadKey, table: ThreadKey, time: i64) -> bool {
        let now = self.people.0.find(thread).and_then(|person| person.belonging);
        let earlier = self.earlier.find(thread).into_iter().flatten();
        let mut all = earlier.chain(now.iter()).rev();
        all.by_ref()
            .take_while(|belonging| belonging.since > time)
            .all(|belonging| belonging.table == table.tid)
    }

    /// The table of a process now.
    fn table_of_process(&self, process: ThreadKey) -> ThreadKey {
        let first = self.belonging(process);
        // The id may have been that of another process's thread.
        if first.pid == process.tid {
            process.with(first.table)
        } else {
            process
        }
    }

    /// Does something, and adds to the effects what comes of it. `is_empty` tells of a table whether nothing in it is
    /// known to be open; without it there is no telling.
    pub(crate) fn act(
        &mut self,
        thread: ThreadKey,
        time: i64,
        act: Act,
        is_empty: Option<&dyn Fn(ThreadKey) -> bool>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Unclear> {
        match act {
            Act::Touch => self.touched(thread),
            Act::Cloning(sharing) => self.people.change().0.get(thread).cloning = sharing,
            Act::Unshare => {
                self.unshare(thread, time, effects);
            }
            Act::Fork {
                child,
                child_pid,
                parent_pid,
            } => {
                if let Some(pid) = parent_pid {
                    self.member(thread, time, pid, effects);
                }
                self.fork(thread, time, child, child_pid, effects);
            }
            Act::Exec => self.exec(thread, time, effects),
            Act::End => self.exit(thread, effects),
            Act::Member { pid, table } => {
                if let Some(address) = table {
                    self.table(thread.with(pid), time, address, is_empty, effects)?;
                }
                self.member(thread, time, pid, effects);
            }
            Act::Holds(holder) => self.holds(thread.trace, holder, effects),
        }
        Ok(())
    }

    /// A thread changes what is in tables, now or later: that may be told once.
    pub(crate) fn touched(&mut self, thread: ThreadKey) {
        self.touch(thread);
        self.touch(thread.with(self.belonging(thread).table));
    }

    pub(crate) fn touch(&mut self, table: ThreadKey) {
        self.people.change().0.get(table).is_touched = true;
    }

    /// Whether nothing is known of what is in the table with that number but what it has from another one.
    pub(crate) fn is_untouched(&self, table: ThreadKey) -> bool {
        let person = self.people.0.find(table);
        person.is_none_or(|person| !person.is_touched)
    }

    /// A table that nobody has.
    fn unused(&mut self, thread: ThreadKey) -> ThreadKey {
        self.numbered = self.numbered.saturating_add(1);
        // No thread has the number below 0, which stands for all that are not known.
        thread.with(ThreadKey::UNKNOWN - self.numbered)
    }

    fn belongs(&mut self, thread: ThreadKey, belonging: Belonging, effects: &mut Vec<Effect>) {
        let person = self.people.change().0.get(thread);
        let is_touched = person.is_touched;
        let before = person.belonging.replace(belonging);
        if is_touched {
            self.touch(thread.with(belonging.table));
        }
        if let Some(before) = before {
            self.earlier.get(thread).push(before);
            self.entries += 1;
        }
        effects.push(Effect::Belongs(thread, belonging));
    }

    fn copy(&mut self, from: ThreadKey, to: ThreadKey, effects: &mut Vec<Effect>) {
        if self.users.find(to).is_some() {
            *self.users.get(to) = Users::default();
        }
        effects.push(Effect::Copied { from, to });
    }

    fn others(&self, table: ThreadKey) -> u32 {
        self.users.find(table).map_or(0, |users| users.others)
    }

    fn unshare(&mut self, thread: ThreadKey, time: i64, effects: &mut Vec<Effect>) -> ThreadKey {
        let Belonging { pid, table, .. } = self.belonging(thread);
        let old = thread.with(table);
        if self.others(old) == 0 {
            return old;
        }
        let new = self.unused(thread);
        self.copy(old, new, effects);
        self.belongs(thread, Belonging::new(time, pid, new.tid), effects);
        let left = self.users.get(old);
        left.others = left.others.saturating_sub(1);
        left.shared &= left.others > 0;
        left.lent |= old == thread;
        new
    }

    fn exec(&mut self, thread: ThreadKey, time: i64, effects: &mut Vec<Effect>) {
        let mut table = thread.with(self.belonging(thread).table);
        if self.users.find(table).is_some_and(|users| users.shared) {
            table = self.unshare(thread, time, effects);
        }
        effects.push(Effect::Executed(table));
    }

    fn fork(
        &mut self,
        parent: ThreadKey,
        time: i64,
        child: i32,
        child_pid: Option<i32>,
        effects: &mut Vec<Effect>,
    ) {
        let child = parent.with(child);
        let from = self.belonging(parent);
        // The call may have failed, and another one have been lost.
        let fits = |how: &Sharing| child_pid.is_none_or(|pid| (pid != child.tid) == how.process);
        let how = self.people.change().0.get(parent).cloning.take().filter(fits);
        let same_process = how.is_some_and(|how| how.process);
        let pid = child_pid.unwrap_or(if same_process { from.pid } else { child.tid });
        if how.map_or(pid != child.tid, |how| how.files) {
            let table = if how.is_some() || pid == from.pid {
                parent.with(from.table)
            } else {
                self.table_of_process(parent.with(pid))
            };
            self.belongs(child, Belonging::new(time, pid, table.tid), effects);
            let users = self.users.get(table);
            users.others += 1;
            users.shared |= pid != from.pid;
        } else {
            let is_lent = self.users.find(child).is_some_and(|users| users.lent);
            let table = if is_lent { self.unused(child) } else { child };
            let is_told = how.is_some() || child_pid.is_some();
            let belonging = Belonging {
                maker: (!is_told).then_some((from.pid, from.table)),
                ..Belonging::new(time, pid, table.tid)
            };
            self.belongs(child, belonging, effects);
            self.copy(parent.with(from.table), table, effects);
        }
        // Whoever had its id may have touched what another thread has.
        self.touch(child);
    }

    fn exit(&mut self, thread: ThreadKey, effects: &mut Vec<Effect>) {
        let table = thread.with(self.belonging(thread).table);
        if self.users.find(table).is_some() {
            let users = self.users.get(table);
            if users.others > 0 {
                users.others -= 1;
                users.shared &= users.others > 0;
                return;
            }
            users.lent = false;
        }
        effects.push(Effect::Closed(table));
    }

    fn member(&mut self, thread: ThreadKey, time: i64, pid: i32, effects: &mut Vec<Effect>) {
        let before = self.belonging(thread);
        if before.pid == pid {
            return;
        }
        let table = match before.maker {
            Some((process, table)) if process == pid => thread.with(table),
            _ => self.table_of_process(thread.with(pid)),
        };
        self.belongs(thread, Belonging::new(time, pid, table.tid), effects);
        if before.table != thread.tid {
            return;
        }
        effects.push(Effect::Moved {
            from: thread,
            to: table,
            since: before.since,
        });
        self.touch(table);
        self.users.get(table).others += 1;
    }

    /// State dump: a process's table is at that address. Who has the same address as another one
    /// before, and of whom nothing is known yet, shares that one's.
    fn table(
        &mut self,
        process: ThreadKey,
        time: i64,
        address: i64,
        is_empty: Option<&dyn Fn(ThreadKey) -> bool>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Unclear> {
        let has_belonging = self
            .people
            .0
            .find(process)
            .is_some_and(|person| person.belonging.is_some());
        let addresses = self.addresses.entry(process.trace).or_default();
        let first = *addresses.entry(address).or_insert(process.tid);
        if first == process.tid {
            return Ok(());
        }
        let is_empty = match is_empty {
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
        self.belongs(process, Belonging::new(time, process.tid, table.tid), effects);
        if table != process {
            effects.push(Effect::Left(process));
        }
        self.touch(table);
        let users = self.users.get(table);
        users.others += 1;
        users.shared = true;
        Ok(())
    }

    fn holds(&mut self, trace: u32, holder: Holder, effects: &mut Vec<Effect>) {
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
            effects.push(Effect::Held(table));
        }
    }

    /// Whether there is much that may be forgotten.
    pub(crate) fn is_worth_forgetting(&self) -> bool {
        self.entries >= 2 * self.kept + 512
    }

    /// Forgets what was before a time for which nobody will ask any more.
    pub(crate) fn forget(&mut self, before: i64) {
        self.entries = 0;
        let nows: Vec<ThreadKey> = self.earlier.entries().map(|(thread, _)| thread).collect();
        for thread in nows {
            let now = self.belonging(thread);
            let history = self.earlier.get(thread);
            // One is asked for from when it begins to when the next one does.
            let after = history.partition_point(|belonging| belonging.since <= before);
            let gone = if now.since <= before {
                history.len()
            } else {
                after.saturating_sub(1)
            };
            history.drain(..gone);
            self.entries += history.len();
        }
        self.earlier.retain(|history| !history.is_empty());
        let is_used = |users: &Users| users.others > 0 || users.lent;
        self.users.retain(is_used);
        self.kept = self.entries;
    }
}

impl Belonging {
    fn new(since: i64, pid: i32, table: i32) -> Belonging {
        Belonging {
            since,
            pid,
            table,
            maker: None,
        }
    }
}
