//! Arguments of system calls by name, resolved when a report requests them.

use tracebraid_ctf::layout::StreamLayout;

use crate::event::KernelEvent;
use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;
use crate::model::StreamModel;
use crate::syscall::Syscall;

/// An integer argument of a system call in the records of an event class.
#[derive(Clone, Debug)]
pub struct Argument(IntField);

impl Argument {
    /// Value of the argument. If the tracer records registers, the upper half of a 32-bit argument
    /// contains whatever the caller left there.
    #[inline]
    pub fn get(&self, body: &mut Body<'_, '_>) -> Option<i64> {
        self.0.get(body)
    }
}

/// A text argument of a system call in the records of an event class.
#[derive(Clone, Debug)]
pub struct TextArgument(TextField);

impl TextArgument {
    /// Bytes of the text, without a terminating null.
    pub fn bytes<'a>(&self, body: &mut Body<'a, '_>) -> Option<&'a [u8]> {
        self.0.bytes(body)
    }
}

impl StreamModel {
    /// The argument `name` of `call` in the entries of an event class: by one of its names
    /// ([`Syscall::argument_names`]), or by position if the class records the arguments of all
    /// calls. `None` if the class has no entries of this call, or lacks the argument. Fields that
    /// are no arguments but are recorded with them, such as the `fds` of `poll`, are found by any
    /// field name.
    pub fn argument(
        &self,
        layout: &StreamLayout,
        class: usize,
        call: Syscall,
        name: &str,
    ) -> Option<Argument> {
        let finder = self.entry_finder(layout, class, call)?;
        let (place, names) = match call.argument(name) {
            Some((place, names)) => (Some(place), names),
            None => (None, Vec::new()),
        };
        let by_name = finder.int(&[name]).or_else(|| finder.int(&names));
        by_name
            .or_else(|| finder.registers().nth(place?))
            .map(Argument)
    }

    /// The text argument `name`, like [`StreamModel::argument`]. Registers never contain texts.
    pub fn text_argument(
        &self,
        layout: &StreamLayout,
        class: usize,
        call: Syscall,
        name: &str,
    ) -> Option<TextArgument> {
        let finder = self.entry_finder(layout, class, call)?;
        let names = call
            .argument(name)
            .map(|(_, names)| names)
            .unwrap_or_default();
        let field = finder.text(&[name]).or_else(|| finder.text(&names));
        field.map(TextArgument)
    }

    /// A finder for an event class, if the class has entries of this call.
    fn entry_finder<'a>(
        &self,
        layout: &'a StreamLayout,
        event: usize,
        call: Syscall,
    ) -> Option<Finder<'a>> {
        match &self.event(event)?.event {
            KernelEvent::Entry(entry) if entry.fixed().is_none_or(|fixed| fixed == call) => {
                Some(Finder { layout, event })
            }
            _ => None,
        }
    }
}
