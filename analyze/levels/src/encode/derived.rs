//! Records of the kernel's event classes that stand for steps of user-level scheduling.
//!
//! The frequent ones are written as bytes: their classes are packed and little-endian
//! (`derived_classes`). The writer checks the size of each.

use std::sync::Arc;

use tracebraid_ctf::write::fields::Fields;
use tracebraid_ctf::write::{EventPlan, WriteError};
use tracebraid_kernel_model::TaskState;

use super::Encoder;
use super::body_bytes::{BodyBytes, Context};
use crate::catalogue::{CONTEXT_BYTES, OF_CPUS};
use crate::derived_classes::{BLOCKED, ENDED};
use crate::names::{NAME, short, text};
use crate::replay::{Current, Derived, PrevState, Violation, Who};
use crate::vocabulary::user_wake;

/// Priority of user-level threads on LTTng's scale: none is known.
const PRIORITY: i32 = 20;

/// Bytes of a name, a thread id and a priority.
const THREAD: usize = NAME + 4 + 4;

impl Encoder<'_> {
    /// Writes a derived event; `running` is the LWP and what it runs.
    pub(super) fn derive(
        &mut self,
        derived: Derived,
        running: (i32, Current),
        time: i64,
    ) -> Result<(), WriteError> {
        let cycles = self.next_cycles(time);
        let context = self.context(running.0, running.1, false);
        let plans = &self.scene.plans.derived;
        match derived {
            Derived::Switch { prev, state, next } => {
                self.switch((prev, state, next), cycles, time, context)
            }
            Derived::Wakeup { ult, reason } => self.wakeup((ult, reason), cycles, time, context),
            Derived::Fork { parent, child } => self.fork(parent, child, cycles, time, context),
            Derived::Exit(ult) => {
                let who = Who::Ult(ult);
                let (name, tid) = (self.scene.name_of(who, time), self.scene.tid_of(who));
                self.fill(&plans.exit, cycles, THREAD + 1, |body| {
                    body.context(context);
                    body.name(name).int32(tid).int32(PRIORITY).int8(1);
                })
            }
            Derived::WaitEntry(reason) => match plans.wait_entries.get(usize::from(reason)) {
                Some(plan) => self.fill(plan, cycles, 0, |body| {
                    body.context(context);
                }),
                None => Ok(()),
            },
            Derived::WaitExit(reason) => match plans.wait_exits.get(usize::from(reason)) {
                Some(plan) => self.fill(plan, cycles, 8, |body| {
                    body.context(context).int64(0);
                }),
                None => Ok(()),
            },
            Derived::Violation(number) => match self.scene.replay.kept.get(number as usize) {
                Some(violation) => self.violation(*violation, cycles, context),
                None => Ok(()),
            },
        }
    }

    fn switch(
        &mut self,
        (prev, state, next): (Who, PrevState, Who),
        cycles: u64,
        time: i64,
        context: Context,
    ) -> Result<(), WriteError> {
        let scene = self.scene;
        let names = [prev, next].map(|who| scene.name_of(who, time));
        let tids = [prev, next].map(|who| scene.tid_of(who));
        let state = match state {
            PrevState::Ready => TaskState::READY,
            PrevState::Blocked => BLOCKED,
            PrevState::Ended => ENDED,
        };
        let plan = &scene.plans.derived.switch;
        self.fill(plan, cycles, 2 * THREAD + 8 + 1, |body| {
            body.context(context);
            body.name(names[0]).int32(tids[0]).int32(PRIORITY);
            body.int64(state);
            body.name(names[1]).int32(tids[1]).int32(PRIORITY).int8(1);
        })
    }

    fn wakeup(
        &mut self,
        (ult, reason): (u32, Option<u16>),
        cycles: u64,
        time: i64,
        context: Context,
    ) -> Result<(), WriteError> {
        let (scene, who) = (self.scene, Who::Ult(ult));
        let (name, tid) = (scene.name_of(who, time), scene.tid_of(who));
        let word = reason.and_then(|reason| scene.states.reasons.get(usize::from(reason)));
        let word = word.map_or("", String::as_str);
        let cpu = self.cpu as i32;
        let bytes = THREAD + 4 + 1 + word.len() + 1;
        self.fill(&scene.plans.derived.wakeup, cycles, bytes, |body| {
            body.context(context);
            body.name(name).int32(tid).int32(PRIORITY).int32(cpu);
            body.int8(user_wake(word).level()).string(word);
        })
    }

    fn fork(
        &mut self,
        parent: Who,
        child: u32,
        cycles: u64,
        time: i64,
        context: Context,
    ) -> Result<(), WriteError> {
        let scene = self.scene;
        let both = [parent, Who::Ult(child)];
        let names = both.map(|who| scene.name_of(who, time));
        let ids = both.map(|who| (scene.tid_of(who), scene.pid_of(who)));
        let plan = &scene.plans.derived.fork;
        self.fill(plan, cycles, 2 * THREAD + 1, |body| {
            body.context(context);
            for (name, (tid, pid)) in names.into_iter().zip(ids) {
                body.name(name).int32(tid).int32(pid);
            }
            body.int8(1);
        })?;
        self.thread(child, cycles, time, context)
    }

    /// Describes a user-level thread.
    pub(super) fn thread(
        &mut self,
        ult: u32,
        cycles: u64,
        time: i64,
        context: Context,
    ) -> Result<(), WriteError> {
        let states = self.scene.states;
        let Some(own) = self.scene.ult(ult) else {
            return Ok(());
        };
        let (pid, id) = own.key();
        let runtime = states.processes.get(&pid).map_or("", String::as_str);
        let runtime = runtime.split('\0').next().unwrap_or_default();
        let name = own.name(time);
        self.put(&self.scene.plans.derived.thread, cycles, |fields| {
            context.give(fields);
            fields.int(own.tid().into()).int(pid.into()).uint(id);
            fields.bytes(name).string(runtime);
        })
    }

    /// A thread that exists when the trace begins.
    pub(super) fn exists(
        &mut self,
        cycles: u64,
        (tid, pid): (i64, i64),
        name: &[u8; NAME],
        context: Context,
    ) -> Result<(), WriteError> {
        self.put(&self.scene.plans.derived.state, cycles, |fields| {
            context.give(fields);
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
    pub(super) fn lwps(&mut self, cycles: u64, context: Context) -> Result<(), WriteError> {
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
        context: Context,
    ) -> Result<(), WriteError> {
        let plans = self.scene.plans;
        let plan = match self.stream {
            OF_CPUS => &plans.derived.violation,
            _ => &plans.violation,
        };
        self.put(plan, cycles, |fields| {
            context.give(fields);
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

    /// Writes a record with this number of bytes after the context.
    #[inline]
    fn fill(
        &mut self,
        plan: &Arc<EventPlan>,
        cycles: u64,
        bytes: usize,
        mut fill: impl FnMut(&mut BodyBytes<'_>),
    ) -> Result<(), WriteError> {
        let bytes = CONTEXT_BYTES + bytes;
        self.writer
            .record_filled(plan, cycles, bytes, |place| fill(&mut BodyBytes(place)))?;
        self.written.derived += 1;
        Ok(())
    }
}
