//! The evaluation of a definition for each event class of the traces.

use serde::{Deserialize, Serialize};
use tracebraid_ctf::layout::StreamLayout;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_engine::{Record, StreamRef};
use tracebraid_follow::{Candidates, Packets, Subjects};
use tracebraid_language::ast::{Expr, Field};
use tracebraid_language::doubts::{Alternatives, Doubt};
use tracebraid_language::{At, ClassField, ClassFilter, Datum};

use crate::user::definition::{Definition, Operand};
use crate::user::probes::has_machines;

/// A definition, prepared for a trace set.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) definition: Definition,
    /// Event classes that rules match.
    pub(super) classes: Vec<ClassPlan>,
    /// By trace, stream class and event class: index in `classes` plus 1, or 0.
    places: Vec<Vec<Vec<u32>>>,
    pub(crate) subjects: Subjects,
    needs_threads: bool,
    /// True if the traces are of several machines.
    has_machines: bool,
}

/// State besides the definition on which attributes depend, and how machines are named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Follows {
    /// Running threads are followed.
    threads: bool,
    /// Machines are distinguished.
    machines: bool,
}

/// Rules and fields of an event class.
#[derive(Debug, Default)]
pub(super) struct ClassPlan {
    pub(super) trace: u32,
    /// Rules that may match, with the rest of their conditions.
    rules: Vec<(usize, ClassFilter)>,
    /// Values to keep of each event record.
    getters: Vec<ClassField>,
    /// By field of the definition: the source of its value.
    pub(super) slots: Vec<Slot>,
}

/// The source of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The event class does not contain the field.
    Missing,
    /// Index in the kept values.
    Kept(usize),
    /// The running thread of the CPU.
    Running,
    /// The time of the event record.
    Time,
}

/// Maximum number of rules for an event class: each has a bit.
const MOST_RULES: usize = 64;

/// Class of records of switches between threads: no event class has this number.
pub(super) const SWITCH: u32 = u32::MAX;

impl Plan {
    /// # Errors
    /// If there are too many rules for an event; a message.
    pub(crate) fn new(set: &TraceSet, definition: Definition) -> Result<Plan, String> {
        let mut plan = Plan {
            needs_threads: false,
            has_machines: has_machines(set),
            subjects: Subjects::new(set),
            classes: Vec::new(),
            places: Vec::new(),
            definition,
        };
        for (index, trace) in set.traces.iter().enumerate() {
            let mut of_trace = Vec::new();
            for stream in &trace.layout.streams {
                let mut of_stream = Vec::new();
                for event in 0..stream.events.len() {
                    let class = plan.class((index, trace), stream, event);
                    if class.rules.len() > MOST_RULES {
                        let name = stream.events.get(event).map_or("", |event| &event.name);
                        return Err(format!(
                            "more than {MOST_RULES} rules apply to the event {name}; combine some rules"
                        ));
                    }
                    let matters = !class.rules.is_empty();
                    if matters {
                        plan.needs_threads |= class.slots.contains(&Slot::Running);
                        plan.classes.push(class);
                    }
                    of_stream.push(if matters {
                        plan.classes.len() as u32
                    } else {
                        0
                    });
                }
                of_trace.push(of_stream);
            }
            plan.places.push(of_trace);
        }
        Ok(plan)
    }

    fn class(
        &self,
        (index, trace): (usize, &Trace),
        stream: &StreamLayout,
        event: usize,
    ) -> ClassPlan {
        let mut class = ClassPlan {
            trace: index as u32,
            slots: vec![Slot::Missing; self.definition.fields.len()],
            ..ClassPlan::default()
        };
        for (at, rule) in self.definition.rules.iter().enumerate() {
            let filter = ClassFilter::new(&rule.when, trace, stream, event);
            if filter.constant() != Some(false) {
                class.rules.push((at, filter));
            }
        }
        let rules = class.rules.iter().map(|(rule, _)| *rule);
        let mut named: Vec<usize> = rules
            .flat_map(|rule| fields(&self.definition, rule))
            .collect();
        named.sort_unstable();
        named.dedup();
        for field in named {
            let Some(asked) = self.definition.fields.get(field) else {
                continue;
            };
            class.slots[field] = match (asked, ClassField::new(asked, trace, stream, event)) {
                (Field::Time, Some(_)) => Slot::Time,
                (_, Some(getter)) => {
                    class.getters.push(getter.labelled());
                    Slot::Kept(class.getters.len() - 1)
                }
                (Field::Tid, None) => Slot::Running,
                _ => Slot::Missing,
            };
        }
        class
    }

    fn place(&self, trace: usize, stream_class: usize, class: usize) -> Option<usize> {
        let place = *self.places.get(trace)?.get(stream_class)?.get(class)?;
        (place as usize).checked_sub(1)
    }

    /// Whether rules match event records of a class.
    pub(crate) fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.place(trace, stream_class, class).is_some()
    }

    /// Whether rules match any event class of a stream.
    pub(crate) fn reads(&self, stream: StreamRef) -> bool {
        let classes = self.subjects.class(stream).and_then(|class| {
            let classes = self.places.get(stream.trace as usize)?;
            classes.get(class)
        });
        classes.is_some_and(|classes| classes.iter().any(|&place| place > 0))
    }

    /// Whether the running thread must be known.
    pub(crate) fn needs_threads(&self) -> bool {
        self.needs_threads
    }

    /// Properties besides the definition on which the state at a time depends.
    pub(crate) fn follows(&self) -> Follows {
        Follows {
            threads: self.needs_threads,
            machines: self.has_machines,
        }
    }

    /// Keeps the values of an event record that rules need.
    #[inline]
    pub(crate) fn see(&self, to: &mut Candidates, packets: &Packets, record: &mut Record<'_>) {
        let found = self.subjects.class(record.stream).and_then(|class| {
            let place = self.place(record.stream.trace as usize, class, record.class)?;
            Some((place, self.classes.get(place)?))
        });
        let Some((place, class)) = found else { return };
        let subject = self.subjects.subject(packets, record);
        let at = &mut At::new(record.body, record.slots);
        let mut bits = 0;
        for (bit, (_, filter)) in class.rules.iter().enumerate() {
            bits |= u64::from(filter.holds(at, &subject)) << bit;
        }
        if bits == 0 {
            return;
        }
        let cpu = subject.cpu.and_then(|cpu| u32::try_from(cpu).ok());
        let about = (subject.time, record.number, place as u32, bits);
        let values = class.getters.iter().map(|getter| getter.get(at, &subject));
        to.add(about, cpu, values);
    }

    /// Another thread runs on a CPU from now on.
    pub(crate) fn switch(
        &self,
        to: &mut Candidates,
        record: (i64, u32),
        cpu: (u32, u32),
        next: i64,
    ) {
        let ((time, stream), (trace, cpu)) = (record, cpu);
        let values = [trace.into(), next.into()].map(Datum::Integer);
        to.add((time, stream, SWITCH, 0), Some(cpu), values.into_iter());
    }

    /// Probable mistakes in the definition, as messages.
    pub(crate) fn doubts(&self, set: &TraceSet) -> Vec<String> {
        let mut parts: Vec<Expr> = self
            .definition
            .rules
            .iter()
            .map(|rule| rule.when.clone())
            .collect();
        parts.extend(self.definition.fields.iter().cloned().map(Expr::Has));
        let of_threads = [(Field::Pid, "pid"), (Field::Procname, "procname")];
        let told = of_threads.into_iter().filter(|(field, _)| {
            let at = self
                .definition
                .fields
                .iter()
                .position(|other| other == field);
            at.is_some_and(|at| {
                self.classes
                    .iter()
                    .any(|class| class.slots[at] == Slot::Missing)
            })
        });
        let told = told.map(|(_, name)| {
            format!("{name} is unknown for events without this context; query thread/TID/ of the history instead")
        });
        let idle = self
            .definition
            .rules
            .iter()
            .enumerate()
            .filter(|(rule, _)| {
                let mut of_classes = self.classes.iter().flat_map(|class| &class.rules);
                !of_classes.any(|(of_class, _)| of_class == rule)
            });
        let idle =
            idle.map(|(rule, _)| format!("no event of the traces can match rule {}", rule + 1));
        // A rule may list an event under the names of several tracers: it is reported only if all
        // are missing.
        let is_of_use =
            |doubt: &Doubt| !matches!(doubt, Doubt::Event { instead, .. } if instead.is_empty());
        let of_names = tracebraid_language::doubts::of(&parts, set, Alternatives::OneOf);
        let mut doubts: Vec<String> = of_names
            .iter()
            .filter(|doubt| is_of_use(doubt))
            .map(ToString::to_string)
            .collect();
        doubts.extend(told.chain(idle));
        doubts.extend(super::doubts::of(&self.definition));
        doubts
    }
}

impl ClassPlan {
    /// The rules that match, given the bits of an event record.
    pub(super) fn rules(&self, bits: u64) -> impl Iterator<Item = usize> + '_ {
        let holds = move |bit: &usize| bits >> bit & 1 == 1;
        let rules = self.rules.iter().enumerate();
        rules
            .filter(move |(bit, _)| holds(bit))
            .map(|(_, (rule, _))| *rule)
    }
}

/// The fields that the steps of a rule refer to.
fn fields(definition: &Definition, rule: usize) -> Vec<usize> {
    let mut fields = Vec::new();
    let mut one = |operand: &Operand| {
        if let Operand::Field(field) = operand {
            fields.push(*field);
        }
    };
    let steps = definition
        .rules
        .get(rule)
        .map_or(&[][..], |rule| &rule.steps);
    steps.iter().for_each(|step| step.operands(&mut one));
    fields
}
