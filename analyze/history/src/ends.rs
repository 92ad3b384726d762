//! CPUs whose recording ends before the trace does. From that end on these values are unknown: all
//! of the CPU; state and system call of each thread that does not run on another CPU, since the
//! thread may run on this one; the depth of each disk.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tracebraid_follow::CpuKey;

use crate::attribute::{Attribute, AttributeKind, Subject};
use crate::piece::{Change, Piece};
use crate::varint::{self, NULL};

/// Attributes that lose their values at the next end, and the running threads, which keep theirs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ends {
    /// States, CPUs and calls of threads, and depths of disks' queues: bits of [`Attribute`].
    known: BTreeSet<u64>,
    /// By trace and CPU: time of the last switch (nanoseconds from the origin) and code of the
    /// thread's id.
    running: BTreeMap<(u32, u32), (i64, u64)>,
}

impl Ends {
    /// Records that `attribute` has the value `code` from `time` (nanoseconds from the origin) on.
    pub(crate) fn note(&mut self, time: i64, attribute: Attribute, code: u64) {
        match attribute.kind() {
            AttributeKind::ThreadState
            | AttributeKind::ThreadCpu
            | AttributeKind::ThreadSyscall
            | AttributeKind::DiskDepth
                if code != NULL =>
            {
                self.known.insert(attribute.bits());
            }
            AttributeKind::CpuThread => {
                let cpu = (attribute.host(), attribute.id());
                let known = self.running.entry(cpu).or_insert((time, code));
                if time >= known.0 {
                    *known = (time, code);
                }
            }
            _ => {}
        }
    }

    /// As above, of all changes of a slice before the next end.
    pub(crate) fn note_all(&mut self, pieces: &[Piece]) {
        for change in pieces.iter().flat_map(|piece| &piece.changes) {
            if let Some(attribute) = Attribute::of_bits(change.attribute) {
                self.note(change.time, attribute, change.code);
            }
        }
    }

    /// Changes at the beginning of `slice`, where the recording of `cpus` ends.
    pub(crate) fn end(
        &mut self,
        slice: usize,
        time: i64,
        cpus: impl Iterator<Item = CpuKey>,
    ) -> Piece {
        let mut piece = Piece {
            slice,
            ..Piece::default()
        };
        let mut set = |attribute: Attribute, code| {
            piece.changes.push(Change {
                time,
                attribute: attribute.bits(),
                code,
            });
        };
        let mut traces = BTreeSet::new();
        for cpu in cpus {
            self.running.remove(&(cpu.trace, cpu.cpu));
            let kinds = AttributeKind::KEPT.into_iter();
            let of_cpu = kinds.filter(|kind| kind.subject() == Subject::Cpu);
            of_cpu.for_each(|kind| set(Attribute::new(kind, cpu.trace, cpu.cpu), NULL));
            traces.insert(cpu.trace);
        }
        let running = self.running.iter();
        let running: BTreeSet<(u32, i64)> = running
            .filter_map(|(&(trace, _), &(_, code))| Some((trace, varint::number(code)?)))
            .collect();
        let goes_on = |attribute: Attribute| {
            let thread = (attribute.host(), attribute.id().into());
            !traces.contains(&attribute.host())
                || attribute.kind() != AttributeKind::DiskDepth && running.contains(&thread)
        };
        // Attributes without a value need no change at the next end.
        self.known.retain(|&bits| {
            let attribute = Attribute::of_bits(bits).filter(|&attribute| !goes_on(attribute));
            attribute
                .into_iter()
                .for_each(|attribute| set(attribute, NULL));
            attribute.is_none()
        });
        piece
    }
}
