//! Records of the kernel's event classes that stand for steps of user-level scheduling.

use std::sync::Arc;

use tracebraid_ctf::write::fields::Fields;
use tracebraid_ctf::write::{EventPlan, WriteError};
use tracebraid_kernel_model::TaskState;

use super::{Encoder, NAME, short, text};
use crate::catalogue::OF_CPUS;
use crate::derived_classes::{BLOCKED, ENDED};
use crate::replay::{Current, Derived, PrevState, Violation, Who};
use crate::vocabulary::user_wake;

/// Priority of user-level threads on LTTng's scale: none is known.
const PRIORITY: i64 = 20;

impl Encoder<'_> {
    /// Writes a derived event; `running` is the LWP and what it runs.
    pub(super) fn derive(
        &mut self,
        derived: Derived,
        running: (i32, Current),
        time: i64,
    ) -> Result<(), WriteError> {
        let cycles = self.next_cycles(time);
        let (tid, lwp, ult) = self.context(running.0, running.1, false);
        let plans = &self.scene.plans.derived;
        let states = self.scene.states;
        let context = move |fields: &mut Fields<'_>| {
            fields.int(tid.into()).int(lwp.into()).uint(ult);
        };
        match derived {
            Derived::Switch { prev, state, next } => {
                let names = [self.name_of(prev, time), self.name_of(next, time)];
                let tids = [self.tid_of(prev), self.tid_of(next)].map(i64::from);
                let state = match state {
                    PrevState::Ready => TaskState::READY,
                    PrevState::Blocked => BLOCKED,
                    PrevState::Ended => ENDED,
                };
                self.put(&plans.switch, cycles, |fields| {
                    context(fields);
                    fields
                        .bytes(text(&names[0]))
                        .int(tids[0])
                        .int(PRIORITY)
                        .int(state);
                    fields
                        .bytes(text(&names[1]))
                        .int(tids[1])
                        .int(PRIORITY)
                        .uint(1);
                })
            }
            Derived::Wakeup { ult, reason } => {
                let who = Who::Ult(ult);
                let name = self.name_of(who, time);
                let word = reason.and_then(|reason| states.reasons.get(usize::from(reason)));
                let word = word.map_or("", String::as_str);
                let (tid, cpu) = (self.tid_of(who), self.cpu);
                self.put(&plans.wakeup, cycles, |fields| {
                    context(fields);
                    fields
                        .bytes(text(&name))
                        .int(tid.into())
                        .int(PRIORITY)
                        .int(cpu.into());
                    fields.uint(user_wake(word).level().into()).string(word);
                })
            }
            Derived::Fork { parent, child } => self.fork(parent, child, cycles, time, &context),
            Derived::Exit(ult) => {
                let who = Who::Ult(ult);
                let (name, tid) = (self.name_of(who, time), self.tid_of(who));
                self.put(&plans.exit, cycles, |fields| {
                    context(fields);
                    fields
                        .bytes(text(&name))
                        .int(tid.into())
                        .int(PRIORITY)
                        .uint(1);
                })
            }
            Derived::WaitEntry(reason) => match plans.wait_entries.get(usize::from(reason)) {
                Some(plan) => self.put(plan, cycles, context),
                None => Ok(()),
            },
            Derived::WaitExit(reason) => match plans.wait_exits.get(usize::from(reason)) {
                Some(plan) => self.put(plan, cycles, |fields| {
                    context(fields);
                    fields.int(0);
                }),
                None => Ok(()),
            },
            Derived::Violation(violation) => self.violation(violation, cycles, &context),
        }
    }

    fn fork(
        &mut self,
        parent: Who,
        child: u32,
        cycles: u64,
        time: i64,
        context: &dyn Fn(&mut Fields<'_>),
    ) -> Result<(), WriteError> {
        let who = Who::Ult(child);
        let names = [self.name_of(parent, time), self.name_of(who, time)];
        let tids = [self.tid_of(parent), self.tid_of(who)].map(i64::from);
        let pids = [self.pid_of(parent), self.pid_of(who)].map(i64::from);
        self.put(&self.scene.plans.derived.fork, cycles, |fields| {
            context(fields);
            fields.bytes(text(&names[0])).int(tids[0]).int(pids[0]);
            fields
                .bytes(text(&names[1]))
                .int(tids[1])
                .int(pids[1])
                .uint(1);
        })?;
        self.thread(child, cycles, time, context)
    }

    /// Describes a user-level thread.
    pub(super) fn thread(
        &mut self,
        ult: u32,
        cycles: u64,
        time: i64,
        context: &dyn Fn(&mut Fields<'_>),
    ) -> Result<(), WriteError> {
        let states = self.scene.states;
        let Some(own) = self.ult(ult) else {
            return Ok(());
        };
        let runtime = states.processes.get(&own.key.0).map_or("", String::as_str);
        let runtime = runtime.split('\0').next().unwrap_or_default();
        let name = own.name(time);
        self.put(&self.scene.plans.derived.thread, cycles, |fields| {
            context(fields);
            fields
                .int(own.tid.into())
                .int(own.key.0.into())
                .uint(own.key.1);
            fields.bytes(name).string(runtime);
        })
    }

    /// A thread that exists when the trace begins.
    pub(super) fn exists(
        &mut self,
        cycles: u64,
        (tid, pid): (i64, i64),
        name: &[u8; NAME],
        context: &dyn Fn(&mut Fields<'_>),
    ) -> Result<(), WriteError> {
        self.put(&self.scene.plans.derived.state, cycles, |fields| {
            context(fields);
            fields
                .int(tid)
                .int(tid)
                .int(pid)
                .int(pid)
                .int(0)
                .int(0)
                .bytes(text(name));
            fields.int(0).int(0).int(0).int(0).int(0).uint(1);
        })
    }

    /// Describes the LWPs and their processes, which no kernel trace does.
    pub(super) fn lwps(
        &mut self,
        cycles: u64,
        context: &dyn Fn(&mut Fields<'_>),
    ) -> Result<(), WriteError> {
        let states = self.scene.states;
        let own = states.lwps.iter().map(|lwp| (lwp.tid, lwp.pid));
        let mains = states.processes.keys().map(|&pid| (pid, pid));
        let all: std::collections::BTreeSet<(i32, i32)> = own.chain(mains).collect();
        for (tid, pid) in all {
            let name = self.scene.names.get(&pid);
            let name = short(name.map_or(b"", |name| name.as_bytes()));
            self.exists(cycles, (tid.into(), pid.into()), &name, context)?;
        }
        Ok(())
    }

    pub(super) fn violation(
        &mut self,
        violation: Violation,
        cycles: u64,
        context: &dyn Fn(&mut Fields<'_>),
    ) -> Result<(), WriteError> {
        let plans = self.scene.plans;
        let plan = match self.stream {
            OF_CPUS => &plans.derived.violation,
            _ => &plans.violation,
        };
        self.put(plan, cycles, |fields| {
            context(fields);
            fields
                .string(violation.kind.name())
                .int(violation.lwp.into());
            fields
                .int(violation.ult.0.into())
                .uint(violation.ult.1)
                .uint(violation.other);
        })
    }

    fn put(
        &mut self,
        plan: &Arc<EventPlan>,
        cycles: u64,
        fields: impl FnMut(&mut Fields<'_>),
    ) -> Result<(), WriteError> {
        self.writer.record(plan, cycles, fields)?;
        self.written.derived += 1;
        Ok(())
    }
}
