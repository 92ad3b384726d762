//! Copies records of the sources, as bytes or field by field, with the ids and names of user-level
//! threads in place of those of LWPs.

use tracebraid_ctf::bits::Cursor;
use tracebraid_ctf::schema::Scope;
use tracebraid_ctf::walk::walk;
use tracebraid_ctf::write::WriteError;

use super::body_bytes::{BodyBytes, Context};
use super::giver::Giver;
use super::{Encoder, Scene};
use crate::catalogue::{CONTEXT_BYTES, Copied, Copying};
use crate::changed_fields::{Added, Replaced, Whose};
use crate::names::NAME;
use crate::replay::{Placed, Who};
use crate::window::{KernelRecord, NO_CLASS, UserRecord};

impl Encoder<'_> {
    /// Copies a record of the kernel.
    pub(super) fn copy(
        &mut self,
        record: &KernelRecord,
        context: Context,
        other: Who,
    ) -> Result<(), WriteError> {
        let scene = self.scene;
        let Some(copied) = scene
            .plans
            .copied
            .get(record.class as usize)
            .filter(|_| record.class != NO_CLASS)
        else {
            return Ok(());
        };
        let own = Self::who(self.running, self.current);
        let who = move |field: &Replaced| match field.what {
            Whose::Running => own,
            Whose::Next | Whose::Other => other,
        };
        let cycles = self.next_cycles(record.time);
        let bytes = scene.window.bytes(record.bytes);
        if let Copying::Fields = copied.copying {
            let values = copied.replaced.iter().map(|field| {
                let who = who(field);
                let id = is_virtual(who).then(|| scene.tid_of(who));
                (field, id, *scene.name_of(who, record.time))
            });
            let values: Vec<_> = values.collect();
            return self.copy_fields(copied, (cycles, bytes), context, &values);
        }
        self.copy_bytes(copied, cycles, context, bytes, |body| {
            for field in &copied.replaced {
                let who = who(field);
                if is_virtual(who) {
                    replace(body, field, scene, (who, record.time));
                }
            }
        })
    }

    /// Copies the bytes of a record after the context; `replace` changes fields of constant size.
    #[inline]
    fn copy_bytes(
        &mut self,
        copied: &Copied,
        cycles: u64,
        context: Context,
        bytes: &[u8],
        mut replace: impl FnMut(&mut [u8]),
    ) -> Result<(), WriteError> {
        let Some(plan) = &copied.plans[self.stream] else {
            self.written.refused += 1;
            return Ok(());
        };
        // The added fields are zero.
        let added = match copied.added {
            Added::Nothing => 0,
            Added::Level => 1,
            Added::LevelAndReason => 2,
        };
        let length = CONTEXT_BYTES + bytes.len() + added;
        let written = self
            .writer
            .record_filled(plan.get(), cycles, length, |place| {
                let mut body = BodyBytes(place);
                body.context(context);
                if let Some(place) = body.0.get_mut(..bytes.len()) {
                    place.copy_from_slice(bytes);
                    replace(place);
                }
            });
        self.count(written)
    }

    /// Counts a record; one that is too large for a packet is left out.
    #[inline]
    fn count(&mut self, written: Result<(), WriteError>) -> Result<(), WriteError> {
        match written {
            Ok(()) => self.written.copied += 1,
            Err(WriteError::EventTooLarge { .. } | WriteError::Field { .. }) => {
                self.written.refused += 1;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Copies a record field by field.
    fn copy_fields(
        &mut self,
        copied: &Copied,
        (cycles, bytes): (u64, &[u8]),
        context: Context,
        values: &[(&Replaced, Option<i32>, [u8; NAME])],
    ) -> Result<(), WriteError> {
        let Some(plan) = &copied.plans[self.stream] else {
            self.written.refused += 1;
            return Ok(());
        };
        let (trace, stream, class) = copied.origin;
        let Some(layout) = self.scene.sources.set.traces.get(trace as usize) else {
            return Ok(());
        };
        let layout = &layout.layout;
        self.slots = layout.registers();
        let Some(of_stream) = layout.streams.get(stream) else {
            return Ok(());
        };
        let Some(event) = of_stream.events.get(class) else {
            return Ok(());
        };
        let Some((cursor, slots)) = kept_cursor(bytes).zip(Some(&mut self.slots)) else {
            self.written.refused += 1;
            return Ok(());
        };
        let scopes = [
            (Scope::CommonContext, &of_stream.common_context),
            (Scope::SpecificContext, &event.specific_context),
            (Scope::Payload, &event.payload),
        ];
        let written = self.writer.record(plan.get(), cycles, |fields| {
            context.give(fields);
            let mut at = cursor;
            let mut giver = Giver {
                fields,
                values: &[],
            };
            for (scope, tree) in scopes {
                if let Some(root) = tree.root() {
                    giver.values = if scope == Scope::Payload { values } else { &[] };
                    // The record has been decoded before.
                    let _ = walk(root, &mut at, slots, &mut giver);
                }
            }
            match copied.added {
                Added::Nothing => {}
                Added::Level => {
                    fields.uint(0);
                }
                Added::LevelAndReason => {
                    fields.uint(0).string("");
                }
            }
        });
        self.count(written)
    }

    pub(super) fn copy_user(
        &mut self,
        record: &UserRecord,
        own: &Placed,
    ) -> Result<(), WriteError> {
        let plans = self.scene.plans;
        let Some(copied) = plans.copied.get(record.class as usize) else {
            return Ok(());
        };
        let context = self.context(record.tid.unwrap_or(-1), own.current, false);
        let cycles = self.next_cycles(own.time);
        let bytes = self.scene.window.bytes(record.bytes);
        match copied.copying {
            Copying::Bytes(_) => self.copy_bytes(copied, cycles, context, bytes, |_| {}),
            Copying::Fields => self.copy_fields(copied, (cycles, bytes), context, &[]),
        }
    }
}

fn is_virtual(who: Who) -> bool {
    matches!(who, Who::Ult(_))
}

/// Replaces a field by the id or the name of a user-level thread.
fn replace(body: &mut [u8], field: &Replaced, scene: Scene<'_>, (who, time): (Who, i64)) {
    let (at, bytes) = field.place;
    let Some(place) = body.get_mut(at..at + bytes) else {
        return;
    };
    if field.is_name {
        place.fill(0);
        let most = place.len().min(NAME);
        place[..most].copy_from_slice(&scene.name_of(who, time)[..most]);
        return;
    }
    let value = i64::from(scene.tid_of(who)).to_le_bytes();
    let most = place.len().min(value.len());
    place[..most].copy_from_slice(&value[..most]);
    if field.is_big {
        place.reverse();
    }
}

/// The cursor at a record that is kept with its position in the packet.
fn kept_cursor(bytes: &[u8]) -> Option<Cursor<'_>> {
    let number = |at: usize| {
        let bytes = bytes.get(at * 8..at * 8 + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    let (base, pos, end) = (number(0)?, number(1)?, number(2)?);
    Some(Cursor {
        data: bytes.get(24..)?,
        base,
        pos,
        end,
    })
}
