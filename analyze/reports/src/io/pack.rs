//! Encodes actions in few bytes: a tag, followed by the fields that [`IoAction::pack`] writes.

use tracebraid_descriptors::{Change, Deed, Exit, Holder, Open, Sharing};
use tracebraid_kernel_model::{FdType, Syscall};

use crate::io::item::IoAction;
use crate::packed::{Reader, Record};

const EXIT: u8 = 0;
const ENTRY: u8 = 1;
const PARK: u8 = 2;
const UNFINISHED: u8 = 3;
const UNSTARTED: u8 = 4;
const FORK: u8 = 5;
const EXEC: u8 = 6;
const END: u8 = 7;
const MEMBER: u8 = 8;
const PROCESS_HOLDS: u8 = 9;
const TABLE_HOLDS: u8 = 10;
const OPENED: u8 = 11;
const PAIR: u8 = 12;
const ACCEPTED: u8 = 13;
const DUPLICATED: u8 = 14;
const CLOSE_ON_EXEC: u8 = 15;
const CLOSED: u8 = 16;
const RANGE: u8 = 17;
const CLONING: u8 = 18;
const UNSHARED: u8 = 19;
const TOUCH: u8 = 20;

impl IoAction {
    /// The action's tag, less than 128.
    #[inline]
    pub(super) fn tag(&self) -> u8 {
        match self {
            IoAction::Exit(_) => EXIT,
            IoAction::Entry => ENTRY,
            IoAction::Park(_) => PARK,
            IoAction::Unfinished(_) => UNFINISHED,
            IoAction::Unstarted => UNSTARTED,
            IoAction::Fork { .. } => FORK,
            IoAction::Exec => EXEC,
            IoAction::End => END,
            IoAction::Member { .. } => MEMBER,
            IoAction::Holds { holder, .. } => match holder {
                Holder::Process(_) => PROCESS_HOLDS,
                Holder::Table(_) => TABLE_HOLDS,
            },
            IoAction::Change(change) => match change {
                Change::Opened { .. } => OPENED,
                Change::Pair { .. } => PAIR,
                Change::Accepted { .. } => ACCEPTED,
                Change::Duplicated { .. } => DUPLICATED,
                Change::CloseOnExec { .. } => CLOSE_ON_EXEC,
                Change::Closed { .. } => CLOSED,
                Change::Range { .. } => RANGE,
                Change::Cloning(_) => CLONING,
                Change::Unshared => UNSHARED,
            },
            IoAction::Touch => TOUCH,
        }
    }

    /// Writes the fields of an action that occurs at `time`, without the tag.
    #[inline]
    pub(super) fn pack(&self, time: i64, record: &mut Record) {
        match *self {
            IoAction::Exit(exit) => exit.pack(record),
            IoAction::Park(open) => open.pack(time, record),
            IoAction::Change(change) => change.pack(record),
            IoAction::Unfinished(began) => record.int(time.wrapping_sub(began)),
            IoAction::Fork {
                child,
                child_pid,
                parent_pid,
            } => {
                record.int(child.into());
                put(record, child_pid.map(i64::from));
                put(record, parent_pid.map(i64::from));
            }
            IoAction::Member { pid, table } => {
                record.int(pid.into());
                put(record, table);
            }
            IoAction::Holds {
                holder,
                fd,
                kind,
                cloexec,
            } => {
                record.int(match holder {
                    Holder::Process(pid) => pid.into(),
                    Holder::Table(address) => address,
                });
                record.int(fd.into());
                record.byte(flagged(kind, cloexec));
            }
            IoAction::Entry
            | IoAction::Unstarted
            | IoAction::Exec
            | IoAction::End
            | IoAction::Touch => {}
        }
    }

    /// Reads the fields of an action that occurs at `time`; `None` if they are malformed.
    #[inline]
    pub(super) fn unpack(tag: u8, time: i64, reader: &mut Reader<'_>) -> Option<IoAction> {
        Some(match tag {
            EXIT => IoAction::Exit(Exit::unpack(reader)?),
            ENTRY => IoAction::Entry,
            PARK => IoAction::Park(Open::unpack(time, reader)?),
            UNFINISHED => IoAction::Unfinished(time.wrapping_sub(reader.int()?)),
            UNSTARTED => IoAction::Unstarted,
            FORK => IoAction::Fork {
                child: reader.int()? as i32,
                child_pid: get(reader)?.map(|pid| pid as i32),
                parent_pid: get(reader)?.map(|pid| pid as i32),
            },
            EXEC => IoAction::Exec,
            END => IoAction::End,
            MEMBER => IoAction::Member {
                pid: reader.int()? as i32,
                table: get(reader)?,
            },
            PROCESS_HOLDS => holds(Holder::Process(reader.int()? as i32), reader)?,
            TABLE_HOLDS => holds(Holder::Table(reader.int()?), reader)?,
            TOUCH => IoAction::Touch,
            tag => IoAction::Change(Change::unpack(tag, reader)?),
        })
    }
}

fn holds(holder: Holder, reader: &mut Reader<'_>) -> Option<IoAction> {
    let fd = reader.int()? as i32;
    let (kind, cloexec) = unflagged(reader.byte()?)?;
    Some(IoAction::Holds {
        holder,
        fd,
        kind,
        cloexec,
    })
}

/// Flags for the fields of an exit.
const COUNTS: u8 = 1;
const CALL: u8 = 2;
const PEER: u8 = 4;
const MADE_PAIR: u8 = 8;

trait PackedExit: Sized {
    fn pack(&self, record: &mut Record);
    fn unpack(reader: &mut Reader<'_>) -> Option<Exit>;
}

trait PackedOpen: Sized {
    fn pack(&self, time: i64, record: &mut Record);
    fn unpack(time: i64, reader: &mut Reader<'_>) -> Option<Open>;
}

trait PackedChange: Sized {
    fn pack(&self, record: &mut Record);
    fn unpack(tag: u8, reader: &mut Reader<'_>) -> Option<Change>;
}

impl PackedExit for Exit {
    fn pack(&self, record: &mut Record) {
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let flags = flag(self.counts, COUNTS) | flag(self.call.is_some(), CALL);
        let pair = self.pair != Exit::NO_PAIR;
        record.byte(flags | flag(self.peer.is_some(), PEER) | flag(pair, MADE_PAIR));
        record.int(self.result);
        if let Some(call) = self.call {
            record.int(call.0.into());
        }
        if let Some(kind) = self.peer {
            record.byte(kind as u8);
        }
        if pair {
            record.int(self.pair.0.into());
            record.int(self.pair.1.into());
        }
    }

    fn unpack(reader: &mut Reader<'_>) -> Option<Exit> {
        let flags = reader.byte()?;
        let mut exit = Exit {
            result: reader.int()?,
            pair: Exit::NO_PAIR,
            call: None,
            peer: None,
            counts: flags & COUNTS != 0,
        };
        if flags & CALL != 0 {
            exit.call = Some(Syscall(reader.int()? as u16));
        }
        if flags & PEER != 0 {
            exit.peer = Some(*FdType::ALL.get(usize::from(reader.byte()?))?);
        }
        if flags & MADE_PAIR != 0 {
            exit.pair = (reader.int()? as i32, reader.int()? as i32);
        }
        Some(exit)
    }
}

impl PackedOpen for Open {
    fn pack(&self, time: i64, record: &mut Record) {
        record.int(time.wrapping_sub(self.time));
        record.int(self.fds.0.into());
        record.int(self.fds.1.into());
        record.int(self.call.0.into());
        record.byte(self.deed as u8);
        record.byte(flagged(self.kind, self.cloexec));
    }

    fn unpack(time: i64, reader: &mut Reader<'_>) -> Option<Open> {
        let time = time.wrapping_sub(reader.int()?);
        let fds = (reader.int()? as i32, reader.int()? as i32);
        let call = Syscall(reader.int()? as u16);
        let deed = *Deed::ALL.get(usize::from(reader.byte()?))?;
        let (kind, cloexec) = unflagged(reader.byte()?)?;
        Some(Open {
            time,
            fds,
            call,
            deed,
            kind,
            cloexec,
        })
    }
}

impl PackedChange for Change {
    fn pack(&self, record: &mut Record) {
        match *self {
            Change::Opened { fd, kind, cloexec } => {
                record.int(fd.into());
                record.byte(flagged(kind, cloexec));
            }
            Change::Pair { fds, kind, cloexec } => {
                record.int(fds.0.into());
                record.int(fds.1.into());
                record.byte(flagged(kind, cloexec));
            }
            Change::Accepted {
                fd,
                from,
                kind,
                cloexec,
            } => {
                record.int(fd.into());
                record.int(from.into());
                record.byte(kind.map_or(u8::MAX, |kind| kind as u8));
                record.byte(cloexec.into());
            }
            Change::Duplicated { from, to, cloexec } => {
                record.int(from.into());
                record.int(to.into());
                record.byte(cloexec.into());
            }
            Change::CloseOnExec { fd, cloexec } => {
                record.int(fd.into());
                record.byte(cloexec.into());
            }
            Change::Closed { fd } => record.int(fd.into()),
            Change::Range {
                first,
                last,
                only_flag,
                unshared,
            } => {
                record.int(first);
                record.int(last);
                record.byte(only_flag.into());
                record.byte(unshared.into());
            }
            Change::Cloning(sharing) => record.byte(match sharing {
                None => u8::MAX,
                Some(Sharing { process, files }) => u8::from(process) * 2 + u8::from(files),
            }),
            Change::Unshared => {}
        }
    }

    fn unpack(tag: u8, reader: &mut Reader<'_>) -> Option<Change> {
        Some(match tag {
            OPENED => {
                let fd = fd(reader)?;
                let (kind, cloexec) = unflagged(reader.byte()?)?;
                Change::Opened { fd, kind, cloexec }
            }
            PAIR => {
                let fds = (fd(reader)?, fd(reader)?);
                let (kind, cloexec) = unflagged(reader.byte()?)?;
                Change::Pair { fds, kind, cloexec }
            }
            ACCEPTED => Change::Accepted {
                fd: fd(reader)?,
                from: fd(reader)?,
                kind: match reader.byte()? {
                    u8::MAX => None,
                    kind => Some(*FdType::ALL.get(usize::from(kind))?),
                },
                cloexec: reader.byte()? != 0,
            },
            DUPLICATED => Change::Duplicated {
                from: fd(reader)?,
                to: fd(reader)?,
                cloexec: reader.byte()? != 0,
            },
            CLOSE_ON_EXEC => Change::CloseOnExec {
                fd: fd(reader)?,
                cloexec: reader.byte()? != 0,
            },
            CLOSED => Change::Closed { fd: fd(reader)? },
            RANGE => Change::Range {
                first: reader.int()?,
                last: reader.int()?,
                only_flag: reader.byte()? != 0,
                unshared: reader.byte()? != 0,
            },
            CLONING => Change::Cloning(match reader.byte()? {
                u8::MAX => None,
                flags => Some(Sharing {
                    process: flags & 2 != 0,
                    files: flags & 1 != 0,
                }),
            }),
            UNSHARED => Change::Unshared,
            _ => return None,
        })
    }
}

fn fd(reader: &mut Reader<'_>) -> Option<i32> {
    Some(reader.int()? as i32)
}

/// Writes an optional integer.
fn put(record: &mut Record, int: Option<i64>) {
    record.byte(int.is_some().into());
    if let Some(int) = int {
        record.int(int);
    }
}

fn get(reader: &mut Reader<'_>) -> Option<Option<i64>> {
    match reader.byte()? {
        0 => Some(None),
        _ => reader.int().map(Some),
    }
}

fn flagged(kind: FdType, flag: bool) -> u8 {
    kind as u8 * 2 + u8::from(flag)
}

fn unflagged(byte: u8) -> Option<(FdType, bool)> {
    let kind = FdType::ALL.get(usize::from(byte / 2))?;
    Some((*kind, byte & 1 != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::{Packed, PackedPosition};

    fn kinds() -> impl Iterator<Item = (FdType, bool)> {
        FdType::ALL
            .into_iter()
            .flat_map(|kind| [(kind, false), (kind, true)])
    }

    /// Every kind of change, with every type of descriptor.
    fn changes() -> Vec<Change> {
        let mut changes = vec![
            Change::Closed { fd: i32::MAX },
            Change::Range {
                first: i64::MIN,
                last: i64::MAX,
                only_flag: true,
                unshared: false,
            },
            Change::Unshared,
            Change::Cloning(None),
        ];
        for (process, files) in [(false, false), (false, true), (true, false), (true, true)] {
            changes.push(Change::Cloning(Some(Sharing { process, files })));
        }
        for (kind, cloexec) in kinds() {
            let fds = (7, -1);
            let (fd, from, to) = (3, i32::MIN, 1000);
            changes.extend([
                Change::Opened { fd, kind, cloexec },
                Change::Pair { fds, kind, cloexec },
                Change::Duplicated { from, to, cloexec },
                Change::CloseOnExec { fd, cloexec },
            ]);
            changes.extend([None, Some(kind)].map(|kind| Change::Accepted {
                fd,
                from,
                kind,
                cloexec,
            }));
        }
        changes
    }

    /// Actions of calls.
    fn calls() -> Vec<IoAction> {
        let mut whats = vec![
            IoAction::Entry,
            IoAction::Unfinished(i64::MIN),
            IoAction::Unfinished(1234),
            IoAction::Unstarted,
        ];
        for (number, deed) in Deed::ALL.into_iter().enumerate() {
            for (kind, cloexec) in kinds() {
                whats.push(IoAction::Park(Open {
                    time: 5_000_000_000,
                    fds: (number as i32, -1),
                    call: Syscall(u16::MAX - number as u16),
                    deed,
                    kind,
                    cloexec,
                }));
                for (call, peer) in [(None, None), (Some(Syscall(0)), Some(kind))] {
                    whats.push(IoAction::Exit(Exit {
                        result: i64::MIN + number as i64,
                        pair: (-1, i32::MAX),
                        call,
                        peer,
                        counts: cloexec,
                    }));
                }
            }
        }
        whats
    }

    /// All other actions.
    fn others() -> Vec<IoAction> {
        let mut whats = vec![IoAction::Exec, IoAction::End, IoAction::Touch];
        for pid in [None, Some(0), Some(-1), Some(i32::MIN), Some(i32::MAX)] {
            whats.push(IoAction::Fork {
                child: 77,
                child_pid: pid,
                parent_pid: pid,
            });
            let table = pid.map(i64::from);
            whats.push(IoAction::Member { pid: 5, table });
        }
        for (kind, cloexec) in kinds() {
            for holder in [Holder::Process(-3), Holder::Table(i64::MIN)] {
                whats.push(IoAction::Holds {
                    holder,
                    fd: 9,
                    kind,
                    cloexec,
                });
            }
        }
        whats
    }

    #[test]
    fn all_that_can_happen_is_read_as_it_was_written() {
        let changes = changes().into_iter().map(IoAction::Change);
        let mut tags = std::collections::BTreeSet::new();
        for what in calls().into_iter().chain(others()).chain(changes) {
            let time = 6_000_000_001;
            let mut packed = Packed::default();
            packed.push(|record| what.pack(time, record));
            let mut place = PackedPosition::default();
            // A record must not be empty.
            packed.push(|record| record.byte(77));
            let read = packed.read(&mut place, |reader| {
                let what = IoAction::unpack(what.tag(), time, reader)?;
                Some((what, reader.byte()?))
            });
            assert_eq!(read, Some((what, 77)));
            tags.insert(what.tag());
        }
        assert_eq!(tags, (EXIT..=TOUCH).collect());
    }

    #[test]
    fn other_bytes_are_nothing() {
        let no_type = FdType::ALL.len() as u8;
        for (tag, bytes) in [
            (TOUCH + 1, &[0, 0, 0, 0][..]),
            (EXIT, &[]),
            (EXIT, &[PEER, 5, no_type]),
            (OPENED, &[3, no_type * 2]),
            (PARK, &[0, 1, 1, 1, 9, 0]),
        ] {
            let mut packed = Packed::default();
            packed.push(|record| bytes.iter().for_each(|&byte| record.byte(byte)));
            let read = packed.read(&mut PackedPosition::default(), |reader| {
                IoAction::unpack(tag, 0, reader)
            });
            assert_eq!(read, None);
        }
    }
}
