//! Events of Go as event records of user-level threads.
//!
//! A goroutine is a user-level thread, a thread of the program an LWP. Event records are in the
//! stream of the thread that recorded them, since that thread was on a CPU then. A thread whose
//! processor is taken away in a system call learns it at its return: so does the trace.
//!
//! The stack of a wait is known at its begin, and written at its end, as other tracers do
//! (`go:wait_stack`): a stack with a duration needs no other event record to be understood.

use std::collections::{HashMap, HashSet};

use tracebraid_ctf::write::fields::Fields as Values;

use super::GoProcess;
use super::classes::Class;
use super::event_kind::Kind;
use super::frontier::Event;
use super::generation::{CpuSample, Generation};
use super::order::Next;
use super::scheduler::{NO_THREAD, Ordered};
use super::spans::{Phase, Spans};
use super::stacks::Stacks;
use super::streams::{Streams, tid};
use crate::error::ImportError;
use crate::output::sound;
use crate::summary::Summary;

/// Why a coroutine waits; Go gives no reason.
const COROUTINE: &str = "coroutine";

/// Function in which the goroutine of a thread that Go did not create begins, while it calls Go.
const CALLBACK: &str = "runtime.cgocallback";

/// Writes events in their order.
pub(super) struct Writer<'a> {
    pub(super) streams: Streams,
    pub(super) summary: &'a mut Summary,
    /// Goroutines with a name.
    named: HashSet<u64>,
    /// By thread, the processor that the trace shows.
    processors: HashMap<u64, u64>,
    spans: Spans,
    stacks: Stacks,
    process: GoProcess,
    /// By goroutine that waits or is in a system call: since when, and the number of its stack.
    waits: HashMap<u64, (u64, u64)>,
    /// Experimental events.
    pub(super) experimental: u64,
}

/// An event with its corrected time.
struct At<'g> {
    generation: &'g Generation,
    thread: u64,
    time: u64,
    event: Ordered,
}

type Written = Result<(), ImportError>;

impl<'a> Writer<'a> {
    pub(super) fn new(
        streams: Streams,
        summary: &'a mut Summary,
        process: &GoProcess,
    ) -> Writer<'a> {
        Writer {
            streams,
            summary,
            named: HashSet::new(),
            processors: HashMap::new(),
            spans: Spans::default(),
            stacks: Stacks::of_process(process.pid.unwrap_or(0)),
            process: process.clone(),
            waits: HashMap::new(),
            experimental: 0,
        }
    }

    pub(super) fn begin_generation(&mut self) {
        self.stacks.begin();
    }

    /// Forgets the waits of goroutines: event records are missing.
    pub(super) fn lose_sight(&mut self) {
        self.waits.clear();
    }

    fn put(&mut self, at: (u64, u64), class: Class, give: impl FnMut(&mut Values<'_>)) -> Written {
        self.streams.record(at, class, self.summary, give)
    }

    /// Writes the state of a goroutine at the begin, from its status.
    pub(super) fn state(
        &mut self,
        generation: &Generation,
        time: u64,
        thread: u64,
        event: &Event,
    ) -> Written {
        let [goroutine, of, status, stack] = event.arguments;
        let (state, lwp) = match status {
            2 => (1, thread),
            3 => (3, of),
            4 => (2, NO_THREAD),
            _ => (0, NO_THREAD),
        };
        if lwp != NO_THREAD {
            self.streams.initial.insert(lwp, (goroutine, state));
        }
        let name = match event.kind {
            Kind::GoStatusStack => generation.root(stack),
            _ => "",
        };
        if !name.is_empty() {
            self.named.insert(goroutine);
        }
        self.put((NO_THREAD, time), Class::UltState, |fields| {
            let fields = fields.uint(goroutine).int(tid(lwp)).uint(state);
            fields.string(name).string("");
        })?;
        // Waiting, or in a system call.
        if event.kind == Kind::GoStatusStack && matches!(state, 2 | 3) {
            let stack = self.known_stack(generation, (NO_THREAD, time), stack)?;
            self.waits.insert(goroutine, (time, stack));
        }
        Ok(())
    }

    /// Writes an event.
    pub(super) fn write(&mut self, generation: &Generation, time: u64, next: Next) -> Written {
        let event = match next {
            Next::Event(event) => event,
            Next::Sample(sample) => return self.sample(generation, time, &sample),
        };
        let thread = event.place.thread;
        let at = At {
            generation,
            thread,
            time,
            event,
        };
        use Kind::*;
        match event.kind {
            GoStatus | GoStatusStack => return Ok(()),
            ProcStatus => return self.processor_status(&at),
            Experimental => {
                self.experimental += 1;
                return Ok(());
            }
            _ => {}
        }
        self.show_processor(thread, time, event.place.processor)?;
        self.stack(&at)?;
        match event.kind {
            ProcStart => self.show_processor(thread, time, Some(event.arguments[0])),
            ProcStop => self.show_processor(thread, time, None),
            ProcSteal => self.stolen(&at),
            ProcsChange | HeapAlloc | HeapGoal => self.counter(&at),
            GoCreate | GoCreateBlocked | GoCreateSyscall => self.created(&at),
            GoStart => {
                let goroutine = event.arguments[0];
                self.switch(&at, 0, goroutine)?;
                self.has_waited(&at, goroutine)
            }
            GoDestroy | GoDestroySyscall => self.destroyed(&at),
            GoStop | GoBlock => self.stopped(&at),
            GoUnblock => self.of_goroutine(&at, Class::UltWake, event.arguments[0]),
            GoSyscallBegin => self.of_current(&at, Class::UltCallBegin),
            GoSyscallEnd => self.call_ended(&at),
            GoSyscallEndBlocked => {
                self.call_ended(&at)?;
                self.leave(&at)
            }
            GoLabel => self.label(&at),
            UserTaskBegin | UserTaskEnd => self.task(&at),
            UserRegionBegin | UserRegionEnd => self.region(&at),
            UserLog => self.log(&at),
            _ => self.phase(&at),
        }
    }

    fn current(at: &At<'_>) -> u64 {
        at.event.place.goroutine.unwrap_or(0)
    }

    fn of_goroutine(&mut self, at: &At<'_>, class: Class, goroutine: u64) -> Written {
        self.put((at.thread, at.time), class, |fields| {
            fields.uint(goroutine);
        })
    }

    fn of_current(&mut self, at: &At<'_>, class: Class) -> Written {
        self.of_goroutine(at, class, Self::current(at))
    }

    fn switch(&mut self, at: &At<'_>, from: u64, to: u64) -> Written {
        self.put((at.thread, at.time), Class::UltSwitch, |fields| {
            fields.uint(from).uint(to);
        })
    }

    /// The current goroutine leaves its thread.
    fn leave(&mut self, at: &At<'_>) -> Written {
        self.switch(at, Self::current(at), 0)
    }

    fn call_ended(&mut self, at: &At<'_>) -> Written {
        self.of_current(at, Class::UltCallEnd)?;
        self.has_waited(at, Self::current(at))
    }

    /// Writes the stack of a wait or system call that has ended, if it is known.
    fn has_waited(&mut self, at: &At<'_>, goroutine: u64) -> Written {
        let Some((since, stack)) = self.waits.remove(&goroutine) else {
            return Ok(());
        };
        if stack == 0 {
            return Ok(());
        }
        self.put((at.thread, at.time), Class::WaitStack, |fields| {
            fields.uint(stack).uint(at.time.saturating_sub(since));
        })
    }

    /// Writes that a thread has another processor than the trace shows.
    fn show_processor(&mut self, thread: u64, time: u64, processor: Option<u64>) -> Written {
        if thread == NO_THREAD || self.processors.get(&thread) == processor.as_ref() {
            return Ok(());
        }
        match processor {
            Some(processor) => self.processors.insert(thread, processor),
            None => self.processors.remove(&thread),
        };
        self.put((thread, time), Class::LwpProcessor, |fields| {
            fields.int(processor.map_or(-1, processor_number));
        })
    }

    fn processor_status(&mut self, at: &At<'_>) -> Written {
        let [processor, status, ..] = at.event.arguments;
        // Running, or in a system call.
        match at.event.is_first && matches!(status, 1 | 3) {
            true => self.show_processor(at.thread, at.time, Some(processor)),
            false => Ok(()),
        }
    }

    fn stolen(&mut self, at: &At<'_>) -> Written {
        let [processor, _, victim, _] = at.event.arguments;
        let victim = match at.event.has_victim {
            true => victim,
            false => NO_THREAD,
        };
        if victim == at.thread {
            return self.show_processor(victim, at.time, None);
        }
        self.put((at.thread, at.time), Class::ProcessorStolen, |fields| {
            fields.int(processor_number(processor)).int(tid(victim));
        })
    }

    fn counter(&mut self, at: &At<'_>) -> Written {
        // Names of the package runtime/metrics.
        let name = match at.event.kind {
            Kind::ProcsChange => "/sched/gomaxprocs:threads",
            Kind::HeapAlloc => "/memory/classes/heap/objects:bytes",
            _ => "/gc/heap/goal:bytes",
        };
        // A heap without a goal has the largest number.
        let value = i64::try_from(at.event.arguments[0]).unwrap_or(i64::MAX);
        self.put((at.thread, at.time), Class::Counter, |fields| {
            fields.string(name).int(value);
        })
    }

    /// Writes the stack of the current goroutine, and its name if that was unknown.
    fn stack(&mut self, at: &At<'_>) -> Written {
        let Some(argument) = at.event.kind.stack_argument() else {
            return Ok(());
        };
        let stack = at.event.arguments[argument];
        let goroutine = at.event.place.goroutine;
        if let Some(goroutine) = goroutine
            && stack != 0
            && matches!(
                at.event.kind,
                Kind::GoBlock | Kind::GoStop | Kind::GoSyscallBegin
            )
            && !self.named.contains(&goroutine)
        {
            let name = at.generation.root(stack);
            if !name.is_empty() {
                self.named.insert(goroutine);
                self.put((at.thread, at.time), Class::UltName, |fields| {
                    fields.uint(goroutine).string(name);
                })?;
            }
        }
        let number = self.known_stack(at.generation, (at.thread, at.time), stack)?;
        if let Some(goroutine) = goroutine
            && matches!(at.event.kind, Kind::GoBlock | Kind::GoSyscallBegin)
        {
            self.waits.insert(goroutine, (at.time, number));
        }
        match number {
            0 => Ok(()),
            number => self.of_goroutine(at, Class::Stack, number),
        }
    }

    /// The number of a stack, written first if it is new; 0 for none.
    fn known_stack(
        &mut self,
        generation: &Generation,
        at: (u64, u64),
        stack: u64,
    ) -> Result<u64, ImportError> {
        let Some(numbered) = self.stacks.number(generation, stack) else {
            return Ok(0);
        };
        if let Some(frames) = numbered.frames {
            let name = sound(self.process.name.as_deref().unwrap_or_default());
            let pid = i64::from(self.process.pid.unwrap_or(0) as i32);
            self.put(at, Class::StackFrames, |fields| {
                let fields = fields.uint(numbered.number).int(pid);
                fields.string(&name).string(&frames);
            })?;
        }
        Ok(numbered.number)
    }

    fn sample(&mut self, generation: &Generation, time: u64, sample: &CpuSample) -> Written {
        let at = (sample.thread, time);
        let stack = self.known_stack(generation, at, sample.stack)?;
        self.put(at, Class::CpuSample, |fields| {
            let fields = fields.uint(sample.goroutine);
            fields.int(processor_number(sample.processor)).uint(stack);
        })
    }

    fn created(&mut self, at: &At<'_>) -> Written {
        let [goroutine, stack, ..] = at.event.arguments;
        let is_callback = at.event.kind == Kind::GoCreateSyscall;
        let name = match is_callback {
            true => CALLBACK,
            false => at.generation.root(stack),
        };
        if !name.is_empty() {
            self.named.insert(goroutine);
        }
        self.put((at.thread, at.time), Class::UltCreate, |fields| {
            fields.uint(goroutine).string(name);
        })?;
        if is_callback {
            self.switch(at, 0, goroutine)?;
            return self.of_goroutine(at, Class::UltCallBegin, goroutine);
        }
        match at.event.kind {
            Kind::GoCreateBlocked => self.block(at, goroutine, COROUTINE),
            _ => Ok(()),
        }
    }

    fn destroyed(&mut self, at: &At<'_>) -> Written {
        let goroutine = Self::current(at);
        for id in self.spans.end_regions(goroutine) {
            self.end_span(at, Some(id))?;
        }
        self.named.remove(&goroutine);
        self.waits.remove(&goroutine);
        self.of_goroutine(at, Class::UltExit, goroutine)?;
        self.leave(at)
    }

    fn block(&mut self, at: &At<'_>, goroutine: u64, reason: &str) -> Written {
        self.put((at.thread, at.time), Class::UltBlock, |fields| {
            fields.uint(goroutine).string(reason);
        })
    }

    fn stopped(&mut self, at: &At<'_>) -> Written {
        let goroutine = Self::current(at);
        let reason = at.generation.string(at.event.arguments[0]);
        if at.event.kind == Kind::GoBlock {
            let reason = if reason.is_empty() { COROUTINE } else { reason };
            self.block(at, goroutine, reason)?;
        } else {
            self.put((at.thread, at.time), Class::Stop, |fields| {
                fields.uint(goroutine).string(reason);
            })?;
        }
        self.leave(at)
    }

    fn label(&mut self, at: &At<'_>) -> Written {
        let label = at.generation.string(at.event.arguments[0]);
        self.put((at.thread, at.time), Class::Label, |fields| {
            fields.uint(Self::current(at)).string(label);
        })
    }

    fn log(&mut self, at: &At<'_>) -> Written {
        let [task, category, message, _] = at.event.arguments;
        let [category, message] = [category, message].map(|id| at.generation.string(id));
        self.put((at.thread, at.time), Class::Log, |fields| {
            fields.uint(task).string(category).string(message);
        })
    }

    fn begin_span(&mut self, at: &At<'_>, id: Option<u64>, name: &str) -> Written {
        let Some(id) = id else { return Ok(()) };
        self.put((at.thread, at.time), Class::SpanBegin, |fields| {
            fields.uint(id).string(name);
        })
    }

    fn end_span(&mut self, at: &At<'_>, id: Option<u64>) -> Written {
        let Some(id) = id else { return Ok(()) };
        self.of_goroutine(at, Class::SpanEnd, id)
    }

    fn task(&mut self, at: &At<'_>) -> Written {
        let [task, parent, name, _] = at.event.arguments;
        if at.event.kind == Kind::UserTaskEnd {
            let id = self.spans.end_task(task);
            return self.end_span(at, id);
        }
        let id = self.spans.begin_task(task);
        if id.is_some() && parent != 0 {
            self.put((at.thread, at.time), Class::Task, |fields| {
                fields.uint(task).uint(parent);
            })?;
        }
        self.begin_span(at, id, at.generation.string(name))
    }

    fn region(&mut self, at: &At<'_>) -> Written {
        let [task, name, ..] = at.event.arguments;
        let name = at.generation.string(name);
        let region = (task, name.to_owned());
        let goroutine = Self::current(at);
        if at.event.kind == Kind::UserRegionBegin {
            let id = self.spans.begin_region(goroutine, region);
            return self.begin_span(at, Some(id), name);
        }
        let id = self.spans.end_region(goroutine, &region);
        self.end_span(at, id)
    }

    /// Phases of the runtime have the names of Go's own tools.
    fn phase(&mut self, at: &At<'_>) -> Written {
        use Kind::*;
        let argument = at.event.arguments[0];
        let processor = at.event.place.processor.unwrap_or(0);
        let goroutine = Self::current(at);
        let (phase, name) = match at.event.kind {
            StwBegin | StwEnd => (Phase::Stop(goroutine), "stop-the-world"),
            GcSweepActive => (Phase::Sweep(argument), "GC incremental sweep"),
            GcSweepBegin | GcSweepEnd => (Phase::Sweep(processor), "GC incremental sweep"),
            GcMarkAssistActive => (Phase::Assist(argument), "GC mark assist"),
            GcMarkAssistBegin | GcMarkAssistEnd => (Phase::Assist(goroutine), "GC mark assist"),
            _ => (Phase::Mark, "GC concurrent mark phase"),
        };
        if matches!(at.event.kind, StwEnd | GcEnd | GcSweepEnd | GcMarkAssistEnd) {
            let id = self.spans.end_phase(phase);
            return self.end_span(at, id);
        }
        let id = self.spans.begin_phase(phase);
        match at.event.kind {
            StwBegin => {
                let reason = at.generation.string(argument);
                self.begin_span(at, id, &format!("{name} ({reason})"))
            }
            _ => self.begin_span(at, id, name),
        }
    }
}

/// Numbers of processors are small; others come from damage.
fn processor_number(processor: u64) -> i64 {
    (processor & i32::MAX as u64) as i64
}
