//! Values of the attributes of a user analysis, and their changes by event records in the order of
//! time.

use std::collections::HashMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Candidate, Candidates};
use tracebraid_language::Datum;

use crate::attribute::{Attribute, AttributeKind};
use crate::piece::Pieces;
use crate::slices::Slices;
use crate::user::definition::{Condition, Deed, Operand, Part, RuleStep, Template};
use crate::user::plan::{ClassPlan, Plan, SWITCH, Slot};

/// Maximum number of attributes: paths that contain an address or a time would otherwise fill the
/// memory.
const MOST_ATTRIBUTES: usize = 1 << 20;
/// Maximum height of a stack.
const MOST_STACKED: u32 = 1 << 12;

/// State after some event records.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct UserMachine {
    /// Number of each attribute, by path.
    #[serde(with = "sorted")]
    numbers: HashMap<String, u32>,
    /// Values of attributes, by number.
    attributes: Vec<Known>,
    /// Heights of stacks, by path.
    #[serde(with = "sorted")]
    stacks: HashMap<String, u32>,
    /// Occupied positions of stacks with keys, by path.
    #[serde(with = "sorted")]
    places: HashMap<String, Vec<bool>>,
    /// Stack and position, by key.
    #[serde(with = "sorted")]
    kept: HashMap<String, (String, usize)>,
    /// By trace and CPU: the running thread.
    #[serde(with = "sorted")]
    running: HashMap<(u32, u32), i64>,
    /// Number of changes that were dropped because of these limits.
    pub(crate) left_out: u64,
}

/// The state of an attribute.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    value: Datum,
    /// When the attribute received its value, in nanoseconds from the origin.
    since: i64,
}

/// Serializes a map as a list in the order of keys, so that equal maps have equal bytes.
mod sorted {
    use std::collections::HashMap;
    use std::hash::Hash;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<K: Ord + Serialize, V: Serialize, S: Serializer>(
        map: &HashMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut list: Vec<(&K, &V)> = map.iter().collect();
        list.sort_unstable_by_key(|(key, _)| *key);
        list.serialize(serializer)
    }

    pub(super) fn deserialize<'d, K, V, D>(deserializer: D) -> Result<HashMap<K, V>, D::Error>
    where
        K: Eq + Hash + Deserialize<'d>,
        V: Deserialize<'d>,
        D: Deserializer<'d>,
    {
        let list: Vec<(K, V)> = Vec::deserialize(deserializer)?;
        Ok(list.into_iter().collect())
    }
}

/// An event record during the execution of steps.
struct Turn<'t> {
    machine: &'t mut UserMachine,
    slices: &'t Slices,
    to: &'t mut Pieces,
    class: &'t ClassPlan,
    event: &'t Candidate,
    values: &'t [Datum],
}

impl UserMachine {
    /// Executes the steps of event records in the order of time.
    pub(crate) fn play(
        &mut self,
        plan: &Plan,
        slices: &Slices,
        to: &mut Pieces,
        taken: &Candidates,
    ) {
        for (event, values) in taken.iter() {
            if event.class == SWITCH {
                self.switch(event, values);
                continue;
            }
            let Some(class) = plan.classes.get(event.class as usize) else {
                continue;
            };
            let mut turn = Turn {
                machine: &mut *self,
                slices,
                to: &mut *to,
                class,
                event,
                values,
            };
            for rule in class.rules(event.bits) {
                let steps = plan
                    .definition
                    .rules
                    .get(rule)
                    .map_or(&[][..], |rule| &rule.steps);
                turn.steps(steps);
            }
        }
    }

    fn switch(&mut self, event: &Candidate, values: &[Datum]) {
        if let ([Datum::Integer(trace), Datum::Integer(next)], Some(cpu)) = (values, event.cpu) {
            self.running.insert((*trace as u32, cpu), *next as i64);
        }
    }

    /// Whether a stored state is consistent: each attribute has exactly one number, and no bound is
    /// exceeded.
    pub(crate) fn is_sound(&self) -> bool {
        let mut numbers: Vec<u32> = self.numbers.values().copied().collect();
        numbers.sort_unstable();
        let count = self.attributes.len();
        let is_few = count <= MOST_ATTRIBUTES
            && self.kept.len() <= MOST_ATTRIBUTES
            && numbers.len() == count;
        let is_low = |height: usize| height <= MOST_STACKED as usize;
        let mut heights = self.stacks.values().map(|&height| height as usize);
        let mut places = self.places.values().map(Vec::len);
        let mut kept = self.kept.values().map(|(_, place)| *place);
        let are_low = heights.all(is_low) && places.all(is_low) && kept.all(is_low);
        is_few && are_low && numbers.into_iter().eq(0..count as u32)
    }

    /// Paths of all attributes, by number.
    pub(crate) fn into_paths(self) -> Vec<String> {
        let mut paths = vec![String::new(); self.attributes.len()];
        for (path, number) in self.numbers {
            paths[number as usize] = path;
        }
        paths
    }

    /// The number and the state of an attribute; `None` if there are too many attributes.
    fn known(&mut self, path: &str) -> Option<(u32, &mut Known)> {
        let number = match self.numbers.get(path) {
            Some(&number) => number,
            None if self.attributes.len() >= MOST_ATTRIBUTES => {
                self.left_out += 1;
                return None;
            }
            None => {
                let number = self.attributes.len() as u32;
                self.numbers.insert(path.to_owned(), number);
                self.attributes.push(Known {
                    value: Datum::Missing,
                    since: 0,
                });
                number
            }
        };
        Some((number, &mut self.attributes[number as usize]))
    }

    fn value(&self, path: &str) -> Datum {
        let number = self.numbers.get(path);
        let known = number.and_then(|&number| self.attributes.get(number as usize));
        known.map_or(Datum::Missing, |known| known.value.clone())
    }
}

impl Turn<'_> {
    fn steps(&mut self, steps: &[RuleStep]) {
        for step in steps {
            match step {
                RuleStep::If {
                    condition,
                    then,
                    otherwise,
                } => match self.holds(condition) {
                    true => self.steps(then),
                    false => self.steps(otherwise),
                },
                RuleStep::Change { path, deed } => {
                    if let Some(path) = self.path(path) {
                        self.change(path, deed);
                    }
                }
            }
        }
    }

    fn change(&mut self, path: String, deed: &Deed) {
        match deed {
            Deed::Set(value) | Deed::Begin(value) => {
                let value = self.text_or_value(value);
                self.set(&path, value);
            }
            Deed::Add(more) => {
                if let Datum::Integer(more) = self.text_or_value(more) {
                    self.add(&path, more);
                }
            }
            Deed::Clear => self.clear(&path),
            Deed::Push(value) => {
                let value = self.text_or_value(value);
                let height = self.machine.stacks.entry(path.clone()).or_default();
                if *height < MOST_STACKED {
                    *height += 1;
                    let place = format!("{path}/{height}");
                    self.set(&place, value);
                }
            }
            Deed::Pop => self.pop(&path),
            Deed::PopAll => {
                while self
                    .machine
                    .stacks
                    .get(&path)
                    .is_some_and(|&height| height > 0)
                {
                    self.pop(&path);
                }
            }
            Deed::Keep { key, value } => {
                if let Some(key) = self.path(key) {
                    self.keep(key, path, value);
                }
            }
            Deed::Drop => self.drop(&path),
            Deed::End(name) => self.end(&path, name),
        }
    }

    /// Puts a value on the lowest free position of a stack.
    fn keep(&mut self, key: String, path: String, value: &Template) {
        self.drop(&key);
        let value = self.text_or_value(value);
        let UserMachine { places, kept, .. } = &mut *self.machine;
        let taken = places.entry(path.clone()).or_default();
        let place = taken.iter().position(|taken| !taken).unwrap_or(taken.len());
        if place >= MOST_STACKED as usize || kept.len() >= MOST_ATTRIBUTES {
            self.machine.left_out += 1;
            return;
        }
        taken.resize(taken.len().max(place + 1), false);
        taken[place] = true;
        self.set(&format!("{path}/{}", place + 1), value);
        self.machine.kept.insert(key, (path, place));
    }

    /// Removes the value that was put on a stack with that key.
    fn drop(&mut self, key: &str) {
        let Some((path, place)) = self.machine.kept.remove(key) else {
            return;
        };
        let taken = self.machine.places.get_mut(&path);
        if let Some(taken) = taken.and_then(|taken| taken.get_mut(place)) {
            *taken = false;
        }
        self.clear(&format!("{path}/{}", place + 1));
    }

    fn pop(&mut self, path: &str) {
        if let Some(height) = self
            .machine
            .stacks
            .get_mut(path)
            .filter(|height| **height > 0)
        {
            let place = format!("{path}/{height}");
            *height -= 1;
            self.clear(&place);
        }
    }

    /// Ends a segment and counts it, if it has begun.
    fn end(&mut self, path: &str, name: &Template) {
        let Some(&number) = self.machine.numbers.get(path) else {
            return;
        };
        let known = &self.machine.attributes[number as usize];
        if known.value.is_missing() {
            return;
        }
        let lasted = i128::from(self.event.time.abs_diff(known.since));
        self.clear(path);
        if let Some(name) = self.path(name) {
            self.add(&format!("{name}/count"), 1);
            self.add(&format!("{name}/total_ns"), lasted);
            self.set(&format!("{name}/last_ns"), Datum::Integer(lasted));
        }
    }

    fn clear(&mut self, path: &str) {
        // An attribute without a value needs no number.
        if self.machine.numbers.contains_key(path) {
            self.set(path, Datum::Missing);
        }
    }

    fn set(&mut self, path: &str, value: Datum) {
        let time = self.to.see(self.event.time);
        if let Some((number, known)) = self.machine.known(path) {
            known.since = time;
            let attribute = Attribute::new(AttributeKind::Custom, 0, number);
            self.to.set_any(self.slices, time, attribute, &value);
            known.value = value;
        }
    }

    fn add(&mut self, path: &str, more: i128) {
        let sum = match self.machine.value(path) {
            Datum::Integer(sum) => sum.saturating_add(more),
            // A text does not become a number.
            other if !other.is_missing() => return,
            _ => more,
        };
        self.set(path, Datum::Integer(sum));
    }

    fn holds(&self, condition: &Condition) -> bool {
        match condition {
            Condition::And(parts) => parts.iter().all(|part| self.holds(part)),
            Condition::Or(parts) => parts.iter().any(|part| self.holds(part)),
            Condition::Not(inner) => !self.holds(inner),
            Condition::Compare(left, operator, right) => {
                self.operand(left).compares(*operator, &self.operand(right))
            }
            Condition::Matches(operand, glob) => self.operand(operand).matches(glob),
            Condition::Has(operand) => !self.operand(operand).is_missing(),
        }
    }

    fn operand(&self, operand: &Operand) -> Datum {
        match operand {
            Operand::Constant(constant) => constant.clone(),
            Operand::Field(field) => match self.class.slots.get(*field) {
                Some(Slot::Kept(at)) => self.values.get(*at).cloned().unwrap_or_default(),
                Some(Slot::Time) => Datum::Integer(self.event.time.into()),
                Some(Slot::Running) => {
                    let cpu = self.event.cpu.map(|cpu| (self.class.trace, cpu));
                    let tid = cpu.and_then(|cpu| self.machine.running.get(&cpu));
                    tid.map_or(Datum::Missing, |&tid| Datum::Integer(tid.into()))
                }
                Some(Slot::Missing) | None => Datum::Missing,
            },
            Operand::State(path) => {
                let path = self.path(path);
                path.map_or(Datum::Missing, |path| self.machine.value(&path))
            }
            Operand::Top(path) => self.top(path).unwrap_or_default(),
        }
    }

    fn top(&self, path: &Template) -> Option<Datum> {
        let path = self.path(path)?;
        let height = self
            .machine
            .stacks
            .get(&path)
            .filter(|height| **height > 0)?;
        Some(self.machine.value(&format!("{path}/{height}")))
    }

    /// The path of a template; `None` if the value of a part is missing.
    fn path(&self, template: &Template) -> Option<String> {
        let mut path = String::new();
        for part in &template.0 {
            match part {
                Part::Text(text) => path.push_str(text),
                Part::Of(operand) => put(&mut path, &self.operand(operand))?,
            }
        }
        Some(path)
    }

    /// The value of a template; missing if the value of a part is.
    fn text_or_value(&self, template: &Template) -> Datum {
        match &template.0[..] {
            [Part::Of(operand)] => self.operand(operand),
            _ => self
                .path(template)
                .map_or(Datum::Missing, |text| Datum::text(text.as_bytes())),
        }
    }
}

/// Appends a value as text; `None` if the value is missing.
pub(crate) fn put(text: &mut String, value: &Datum) -> Option<()> {
    match value {
        Datum::Missing => return None,
        Datum::Integer(number) => write!(text, "{number}").ok()?,
        Datum::Float(bits) => write!(text, "{}", f64::from_bits(*bits)).ok()?,
        other => text.push_str(&String::from_utf8_lossy(other.bytes().unwrap_or_default())),
    }
    Some(())
}
