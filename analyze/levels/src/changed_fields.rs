//! The fields of the kernel's event classes that are about threads: those whose values a
//! super-trace replaces, and those that it adds.

use std::sync::Arc;

use tracebraid_ctf::layout::node::{Length, NodeKind};
use tracebraid_ctf::layout::{FieldRef, StreamLayout};
use tracebraid_ctf::schema::build::{Align, int_class};
use tracebraid_ctf::schema::{ByteOrder, EventClass, FieldClass, Member, Scope, StructClass};
use tracebraid_kernel_model::KernelEvent;

/// A field whose value the levels replace.
#[derive(Clone, Debug)]
pub(crate) struct Replaced {
    pub(crate) what: Whose,
    /// Name of the thread instead of its id.
    pub(crate) is_name: bool,
    pub(crate) field: String,
    /// Offset in bytes after the header, and size in bytes.
    pub(crate) place: (usize, usize),
    pub(crate) is_big: bool,
}

/// The thread that a replaced field is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The thread that leaves the CPU, or that runs.
    Running,
    /// The thread that gets the CPU.
    Next,
    /// Another thread: woken, migrated.
    Other,
}

/// Fields that are added to a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    Nothing,
    /// `level`.
    Level,
    /// `level` and `reason`.
    LevelAndReason,
}

/// Fields of a kernel class that are replaced, and fields that are added.
pub(crate) fn changes(
    layout: &StreamLayout,
    class: usize,
    event: &KernelEvent,
) -> (Vec<Replaced>, Added) {
    let mut replaced = Vec::new();
    let mut add = |what: Whose, ids: &[&str], name: &str| {
        let id = ids
            .iter()
            .find_map(|id| replaced_field(layout, class, what, id, false));
        let Some(id) = id else { return };
        replaced.push(id);
        replaced.extend(replaced_field(layout, class, what, name, true));
    };
    let added = match event {
        KernelEvent::Switch(_) => {
            add(Whose::Running, &["prev_tid", "prev_pid"], "prev_comm");
            add(Whose::Next, &["next_tid", "next_pid"], "next_comm");
            Added::Level
        }
        KernelEvent::Wakeup(_) => {
            add(Whose::Other, &["tid", "pid"], "comm");
            Added::LevelAndReason
        }
        KernelEvent::Migrate(_) | KernelEvent::SchedStat(_) | KernelEvent::Inherit(_) => {
            add(Whose::Other, &["tid", "pid"], "comm");
            Added::Level
        }
        KernelEvent::Fork(_) => {
            let is_lttng = field_at(layout, class, "child_tid").is_some();
            let parent = if is_lttng { "parent_tid" } else { "parent_pid" };
            add(Whose::Running, &[parent], "parent_comm");
            Added::Level
        }
        KernelEvent::ThreadExit(_) => Added::Level,
        _ => Added::Nothing,
    };
    (replaced, added)
}

fn field_at(layout: &StreamLayout, class: usize, name: &str) -> Option<FieldRef> {
    let find = |name: &str| layout.field(class, Scope::Payload, &[name]);
    find(name).or_else(|| find(&format!("_{name}")))
}

fn replaced_field(
    layout: &StreamLayout,
    class: usize,
    what: Whose,
    name: &str,
    is_name: bool,
) -> Option<Replaced> {
    let field = field_at(layout, class, name)?;
    let mut place = (0, 0);
    let mut is_big = false;
    if is_name {
        let offset = field.offset().filter(|at| at % 8 == 0);
        // Names are arrays of 16 bytes; strings of variable length are not replaced.
        let bytes = text_bytes(&field)?;
        if let Some(at) = offset {
            place = ((at / 8) as usize, bytes as usize);
        }
    } else if let Some((at, read)) = field.constant()
        && at % 8 == 0
        && read.length % 8 == 0
        && !read.reversed
    {
        place = ((at / 8) as usize, usize::from(read.length / 8));
        is_big = read.big;
    }
    let field = name.to_owned();
    Some(Replaced {
        what,
        is_name,
        field,
        place,
        is_big,
    })
}

/// The class with the added fields.
pub(crate) fn with_added(class: EventClass, added: Added) -> EventClass {
    let Some(FieldClass::Struct(payload)) = &class.payload else {
        return class;
    };
    if added == Added::Nothing {
        return class;
    }
    let mut members = payload.members.clone();
    let level = FieldClass::Int(Arc::new(int_class(8, ByteOrder::Little, Align::Bytes)));
    members.push(Member {
        name: "level".into(),
        class: level,
    });
    if added == Added::LevelAndReason {
        let reason = FieldClass::Str {
            encoding: tracebraid_ctf::schema::Encoding::Utf8,
        };
        members.push(Member {
            name: "reason".into(),
            class: reason,
        });
    }
    let payload = StructClass {
        min_align: payload.min_align,
        members,
    };
    EventClass {
        payload: Some(FieldClass::Struct(Arc::new(payload))),
        ..class
    }
}

/// Size of a text of fixed length.
fn text_bytes(field: &FieldRef) -> Option<u64> {
    match (field.kind(), field.element()) {
        (NodeKind::SizedStr(Length::Static(bytes), _), _) => Some(*bytes),
        (NodeKind::Array(Length::Static(bytes)), Some(NodeKind::Int(read, _)))
            if read.length == 8 =>
        {
            Some(*bytes)
        }
        _ => None,
    }
}
