//! Selection of system calls, and their description to BPF programs (`struct plan`).

use crate::calls::{Call, Calls, Field};
use crate::part::Part;
use crate::shared::{MOST_CALLS, MOST_PARTS, PART_DESCRIPTION, PLAN_SIZE};

/// Selection of the system calls to record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Syscalls {
    /// None.
    #[default]
    None,
    /// All, including those of 32-bit programs and unknown numbers.
    All,
    /// Those with these names, without a prefix: `read`, `openat`.
    Only(Vec<String>),
}

/// Calls with different names in the C library and in the kernel.
const ALIASES: [(&str, &str); 8] = [
    ("stat", "newstat"),
    ("fstat", "newfstat"),
    ("lstat", "newlstat"),
    ("fstatat", "newfstatat"),
    ("uname", "newuname"),
    ("umount2", "umount"),
    ("sendfile", "sendfile64"),
    ("pread", "pread64"),
];

impl Syscalls {
    /// The names that no call has.
    pub fn unknown(&self) -> Vec<String> {
        let Syscalls::Only(names) = self else {
            return Vec::new();
        };
        let calls = crate::calls::calls();
        let all = calls.own.iter().chain(&calls.compat).map(|call| call.name);
        let is_known = |name: &&String| all.clone().any(|known| known == **name);
        names
            .iter()
            .filter(|name| !is_known(name))
            .cloned()
            .collect()
    }

    /// Replaces the C library's names by those of the kernel.
    #[must_use]
    pub fn by_kernel_names(self) -> Syscalls {
        let Syscalls::Only(names) = self else {
            return self;
        };
        let known = |name: String| {
            let found = ALIASES.iter().find(|(alias, _)| *alias == name);
            found.map_or(name, |(_, kernel)| (*kernel).to_owned())
        };
        Syscalls::Only(names.into_iter().map(known).collect())
    }

    pub(crate) fn wants(&self, name: &str) -> bool {
        match self {
            Syscalls::None => false,
            Syscalls::All => true,
            Syscalls::Only(names) => names.iter().any(|wanted| wanted == name),
        }
    }

    /// Encoded plans by number; those of 32-bit programs follow the others.
    pub(crate) fn plans(&self, calls: &Calls) -> Vec<[u8; PLAN_SIZE]> {
        // Calls with unknown numbers are recorded with raw arguments, at the exit, too.
        let mut other = [0; PLAN_SIZE];
        if *self == Syscalls::All {
            (other[0], other[1]) = (1, 1);
        }
        let mut plans = vec![other; 2 * MOST_CALLS];
        for (plans, calls) in plans
            .chunks_mut(MOST_CALLS)
            .zip([&calls.own, &calls.compat])
        {
            for call in calls {
                if let Some(plan) = plans.get_mut(usize::from(call.number)) {
                    *plan = self.plan(call);
                }
            }
        }
        plans
    }

    fn plan(&self, call: &Call) -> [u8; PLAN_SIZE] {
        let mut plan = [0; PLAN_SIZE];
        plan[0] = u8::from(self.wants(call.name));
        plan[1] = u8::from(!call.exit.is_empty());
        plan[2] = u8::from(changes_arguments(call));
        let (entry, exit) = plan[3..].split_at_mut(MOST_PARTS * PART_DESCRIPTION);
        for (parts, fields) in [(entry, &call.entry), (exit, &call.exit)] {
            let found = fields.iter().filter_map(part);
            for (place, part) in parts.chunks_exact_mut(PART_DESCRIPTION).zip(found) {
                place.copy_from_slice(&part);
            }
        }
        plan
    }
}

/// True if the memory to which the arguments point may differ at the exit: the call replaces the
/// program, or writes to that memory.
fn changes_arguments(call: &Call) -> bool {
    let argument = |field: &Field| match *field {
        Field::Shape { shape, argument } if shape.part().is_some() => Some(argument),
        Field::Text { argument, .. } => Some(argument),
        _ => None,
    };
    let written: Vec<u8> = call.exit.iter().filter_map(argument).collect();
    let mut read = call.entry.iter().filter_map(argument);
    call.name.starts_with("execve") || read.any(|argument| written.contains(&argument))
}

fn part(field: &Field) -> Option<[u8; PART_DESCRIPTION]> {
    match *field {
        Field::Value { .. } => None,
        Field::Text { argument, .. } => Some(Part::Text.encode(argument)),
        Field::Shape { shape, argument } => Some(shape.part()?.encode(argument)),
    }
}
