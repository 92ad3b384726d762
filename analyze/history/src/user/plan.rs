//! What a definition means for each event class of the traces.

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

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(super) definition: Definition,
    /// The event classes that matter.
    pub(super) classes: Vec<ClassPlan>,
    /// By trace, stream class and event class: one more than the place among the classes, or 0.
    places: Vec<Vec<Vec<u32>>>,
    pub(crate) subjects: Subjects,
    needs_threads: bool,
    /// The traces are of several machines.
    has_machines: bool,
}

/// What is followed besides what a definition says, and how it is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Follows {
    /// Which threads run.
    threads: bool,
    /// Machines are told apart.
    machines: bool,
}

/// What the event records of a class do.
#[derive(Debug, Default)]
pub(super) struct ClassPlan {
    pub(super) trace: u32,
    /// Rules that may hold, and what decides; if nothing does, they hold.
    rules: Vec<(usize, ClassFilter)>,
    /// What is kept of each event record.
    getters: Vec<ClassField>,
    /// By field of the definition: where its value is.
    pub(super) slots: Vec<Slot>,
}

/// Where the value of a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// Event records of the class do not have it.
    Missing,
    /// Among what is kept.
    Kept(usize),
    /// It is the thread that runs on the CPU.
    Running,
    /// It is the time.
    Time,
}

/// Rules on the event records of one class, at most: each has a bit.
const MOST_RULES: usize = 64;

/// The class of what tells which thread runs: no event class has that number.
pub(super) const SWITCH: u32 = u32::MAX;

impl Plan {
    /// # Errors
    /// When there are too many rules for an event, for people.
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
                            "more than {MOST_RULES} rules are about the event {name}"
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

    /// Whether event records of a class matter.
    pub(crate) fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.place(trace, stream_class, class).is_some()
    }

    /// Whether any event class of a stream matters.
    pub(crate) fn reads(&self, stream: StreamRef) -> bool {
        let classes = self.subjects.class(stream).and_then(|class| {
            let classes = self.places.get(stream.trace as usize)?;
            classes.get(class)
        });
        classes.is_some_and(|classes| classes.iter().any(|&place| place > 0))
    }

    /// Whether it must be told which thread runs.
    pub(crate) fn needs_threads(&self) -> bool {
        self.needs_threads
    }

    /// What decides, besides the definition, what is known at a time.
    pub(crate) fn follows(&self) -> Follows {
        Follows {
            threads: self.needs_threads,
            machines: self.has_machines,
        }
    }

    /// Keeps what matters of an event record.
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

    /// What in the definition is probably wrong, for people.
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
            format!("{name} is not known at events without such a context: ask thread/{{tid}}/ of the history instead")
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
            idle.map(|(rule, _)| format!("no event of the traces can be one of rule {}", rule + 1));
        // A rule lists an event under the names of several tracers: only if all are missing, the
        // rule is reported.
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
    /// The rules that hold, by the bits of an event record.
    pub(super) fn rules(&self, bits: u64) -> impl Iterator<Item = usize> + '_ {
        let holds = move |bit: &usize| bits >> bit & 1 == 1;
        let rules = self.rules.iter().enumerate();
        rules
            .filter(move |(bit, _)| holds(bit))
            .map(|(_, (rule, _))| *rule)
    }
}

/// The fields that the steps of a rule name.
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
