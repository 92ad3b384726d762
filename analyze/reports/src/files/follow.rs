//! What becomes of descriptors and what is done with them, one after the other: for other analyses than this report.

use tracebraid_descriptors::Turn;
use tracebraid_kernel_model::FdType;

use crate::files::machine::{Around, Done};
use crate::files::names::UNKNOWN;
use crate::files::stats::Side;
use crate::files::{FilesPartial, FilesRules};

/// A descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Descriptor {
    /// Index of the trace.
    pub trace: u32,
    /// The process; of those that share their descriptors, the one that had them first. Below 0 if whoever holds it got a
    /// copy of what it had shared.
    pub process: i32,
    /// Its number.
    pub fd: i32,
}

/// Something that happened to descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// It is that from now on.
    Is {
        /// Which one.
        descriptor: Descriptor,
        /// Path, or what else it is called.
        name: &'a str,
        /// What it refers to.
        kind: FdType,
        /// It is still the same thing, which is better known now.
        is_same: bool,
    },
    /// It is closed, and so are those after it up to that number.
    Closed(Descriptor, i32),
    /// A call that used it has ended, which read and wrote so many bytes.
    Used(Descriptor, u64, u64),
    /// A thread (of a trace, by its number) has read and written so many bytes.
    Moved((u32, i32), u64, u64),
    /// A thread is made: whoever had its number before is another one.
    Born(u32, i32),
}

/// What is read and written of bytes that come from something, or go there.
fn sides(side: Side, bytes: u64) -> (u64, u64) {
    match side {
        Side::From => (bytes, 0),
        Side::To => (0, bytes),
    }
}

impl FilesRules {
    /// Plays what was seen before a time, or everything, and tells what becomes of descriptors and is done with them: the time, and
    /// what happened then. A partial state that is played so makes no report.
    pub fn follow(
        &self,
        partial: &mut FilesPartial,
        until: Option<i64>,
        tell: &mut dyn FnMut(i64, News<'_>),
    ) {
        partial.keep_texts();
        partial.queue.forget_acts();
        let (machine, texts) = (&mut partial.machine, &mut partial.known);
        let dictionaries = &partial.dictionaries;
        machine.descriptors.tell();
        let mut all = Vec::new();
        partial.queue.items.play(until, |cpu, time, mut item| {
            item.texts(|text| *text = dictionaries.known(*text, texts));
            let mut around = Around {
                rules: self,
                texts: &mut *texts,
                done: Some(&mut all),
            };
            machine.apply(&mut around, cpu, time, item);
            for done in all.drain(..) {
                let news = match done {
                    Done::Used {
                        table,
                        fd,
                        side,
                        bytes,
                    } => {
                        let descriptor = Descriptor {
                            trace: table.trace,
                            process: table.tid,
                            fd,
                        };
                        let (read, written) = sides(side, bytes);
                        News::Used(descriptor, read, written)
                    }
                    Done::Moved(thread, side, bytes) => {
                        let (read, written) = sides(side, bytes);
                        News::Moved((thread.trace, thread.tid), read, written)
                    }
                    Done::Born(thread) => News::Born(thread.trace, thread.tid),
                };
                tell(time, news);
            }
            let files = &machine.files;
            for turn in machine.descriptors.turns() {
                match turn {
                    Turn::Closed {
                        table,
                        fds: (fd, last),
                    } => {
                        let (trace, process) = (table.trace, table.tid);
                        tell(time, News::Closed(Descriptor { trace, process, fd }, last));
                    }
                    Turn::Is {
                        table,
                        fd,
                        kind: file,
                        is_same,
                    } => {
                        let descriptor = Descriptor {
                            trace: table.trace,
                            process: table.tid,
                            fd,
                        };
                        let Some(file) = files.get(file) else { continue };
                        let name = texts.get(file.name).unwrap_or_default();
                        let news = match file.kind == FdType::Unknown && name == UNKNOWN {
                            // It is what it was, and that is not known.
                            true if is_same => continue,
                            // It is a copy of what is not known, or made by what is not known.
                            true => News::Closed(descriptor, fd),
                            false => News::Is {
                                descriptor,
                                name,
                                kind: file.kind,
                                is_same,
                            },
                        };
                        tell(time, news);
                    }
                }
            }
        });
        if let Some(until) = until {
            partial.forget_texts(until);
        }
    }
}
