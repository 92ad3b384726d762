//! Writes the events of the lanes.

use libbpf_rs::{MapCore, MapFlags};

use super::Drain;
use crate::error::RecordError;
use crate::lane::Event;
use crate::machine::now;
use crate::shared::kinds;
use crate::stacks::Meanings;
use crate::triggers;

impl Drain<'_> {
    /// Writes the events before a time, or all events, as far as they fit.
    pub(super) fn write(&mut self, until: Option<u64>) -> Result<(), RecordError> {
        if self.full_since.is_some() {
            return Ok(());
        }
        if let Some(meanings) = self.meanings {
            meanings.unwind(self.lanes, until);
            self.put_pythons(meanings);
        }
        self.rotate(until)?;
        if self.full_since.is_some() {
            return Ok(());
        }
        let room = |limit: u64| self.room(limit, self.output.file_bytes());
        self.full_since = self
            .options
            .limit
            .and_then(|limit| self.over(room(limit), until));
        self.release(self.full_since.or(until))
    }

    /// Evaluates the conditions on the events that are about to be written, and inserts an event
    /// for one that held, at the time of the event that fulfilled it.
    fn trigger(&mut self, until: Option<u64>) {
        let Some(triggers) = &mut self.triggers else {
            return;
        };
        let context_bytes = self.contexts.bytes();
        for (cpu, lane) in self.lanes.iter().enumerate() {
            lane.borrow_mut().preview(until, |event| {
                let payload = event.payload.get(context_bytes..).unwrap_or_default();
                triggers.event(cpu, &Event { payload, ..event });
            });
        }
        let Some((time, held)) = triggers.settle(now()) else {
            return;
        };
        let (Some(first), false) = (self.lanes.first(), self.rotations.is_over) else {
            return;
        };
        let payload = triggers::payload(&held);
        first
            .borrow_mut()
            .insert(time, kinds::TRACEBRAID_TRIGGER, &payload);
        if let Ok(mut all) = self.held.lock() {
            all.push(held);
        }
    }

    /// Writes the events before a time, or all events, into the current chunk.
    pub(super) fn release(&mut self, until: Option<u64>) -> Result<(), RecordError> {
        self.trigger(until);
        let (output, reserve) = (&mut self.output, &mut self.reserve);
        let mut is_full = false;
        for ((cpu, lane), unwritten) in self.lanes.iter().enumerate().zip(&mut self.unwritten) {
            lane.borrow_mut().release(until, |event| {
                if !is_full {
                    match output.event(cpu, &event) {
                        Err(error) if reserve.gives(&error) => is_full = true,
                        result => return result,
                    }
                }
                *unwritten += 1;
                Ok(())
            })?;
        }
        self.written_until = until.unwrap_or_else(now).max(self.written_until);
        if is_full {
            self.full_since = Some(self.written_until);
        }
        Ok(())
    }

    /// Enters Python interpreters that have been found into the map from which BPF reads their
    /// frames. If the map is full, stacks contain the interpreters' native frames.
    fn put_pythons(&self, meanings: &Meanings) {
        for (pid, python) in meanings.pythons() {
            if let Some(map) = &self.pythons {
                let _ = map.update(&pid.to_ne_bytes(), &python.encoded, MapFlags::ANY);
            }
        }
    }

    /// Flushes the streams, so that written events are not lost if this process is killed.
    pub(super) fn flush(&mut self) -> Result<(), RecordError> {
        match self.output.flush() {
            Err(error) if self.reserve.gives(&error) => self.full_since = Some(self.written_until),
            result => result?,
        }
        Ok(())
    }
}
