//! Arguments of system calls by name, resolved when a report asks for them.

use tracebraid_ctf::layout::StreamLayout;

use crate::event::KernelEvent;
use crate::field::{Body, IntField, TextField};
use crate::finder::Finder;
use crate::model::StreamModel;
use crate::syscall::Syscall;

/// An integer argument of a system call in the records of one event class.
#[derive(Clone, Debug)]
pub struct Argument(IntField);

impl Argument {
    /// Its value. Tracers that give registers give whatever the caller left in the upper half of an
    /// argument of 32 bits.
    #[inline]
    pub fn get(&self, body: &mut Body<'_, '_>) -> Option<i64> {
        self.0.get(body)
    }
}

/// A text argument of a system call in the records of one event class.
#[derive(Clone, Debug)]
pub struct TextArgument(TextField);

impl TextArgument {
    /// Its bytes, up to a null.
    pub fn bytes<'a>(&self, body: &mut Body<'a, '_>) -> Option<&'a [u8]> {
        self.0.bytes(body)
    }
}

impl StreamModel {
    /// The argument of `call` of that name in the entries of an event class: by one of its names
    /// ([`Syscall::argument_names`]), or by its place where the class gives all calls' arguments.
    /// `None` if the class is no entry of that call, or does not give it. For fields that are no
    /// arguments but are recorded with them, as the `fds` of `poll`, any name of a field does.
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

    /// The text argument of that name, as [`StreamModel::argument`]. No register tells a text.
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

    /// If that event class has entries of that call.
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
