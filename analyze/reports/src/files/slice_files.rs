//! Files of a slice: files that calls open, and files that descriptors refer to.

use tracebraid_descriptors::{OfBefore, ValueId};
use tracebraid_files::{AT_FDCWD, Entered, FileId, Made, Naming, Need};
use tracebraid_follow::ThreadKey;

use crate::files::slice::Slice;
use crate::files::slice_steps::{Input, SliceFile, SliceStep};

impl Slice<'_> {
    /// The file that a call makes, where `held` is the file of the call's descriptor at its start.
    pub(super) fn what(&mut self, thread: ThreadKey, made: &Made, held: ValueId) -> FileId {
        let trace = thread.trace;
        let naming = Naming::new(trace, made);
        let input = match naming.need(made.exited.exit.result) {
            Need::Nothing => None,
            Need::Same => return self.known(trace, held),
            Need::Listener => {
                let table = self.descriptors.table(thread);
                Some(self.descriptors.now(table, made.entered.open.fds.0, None))
            }
            Need::Socket => Some(held),
            Need::Directory => return self.opened(thread, naming, &made.entered, held),
        };
        let Some(input) = input else {
            let file = naming.file(&mut self.texts, None, None);
            return self.file(SliceFile::File(file));
        };
        let socket = self.known(trace, input);
        match self.files.keys().get((socket.0 as usize).wrapping_sub(1)) {
            Some(&SliceFile::File(socket)) => {
                let file = naming.file(&mut self.texts, Some(socket), None);
                self.file(SliceFile::File(file))
            }
            _ => self.file(SliceFile::Named(naming, Input::Held(input))),
        }
    }

    /// The file that a call opens by a path, which may be relative to a directory.
    fn opened(
        &mut self,
        thread: ThreadKey,
        naming: Naming,
        entered: &Entered,
        held: ValueId,
    ) -> FileId {
        let path = self.texts.get(naming.text).unwrap_or_default();
        let directory = if path.starts_with('/') {
            None
        } else if entered.dir == AT_FDCWD {
            let number = self.working_directory(self.descriptors.process(thread));
            return self.file(SliceFile::Named(naming, Input::Directory(number)));
        } else {
            match self.descriptors.known(held) {
                Ok(None) => None,
                Ok(Some(file)) => match self.files.keys().get(file as usize) {
                    Some(SliceFile::File(file)) => Some(file.name).filter(|_| file.kind.has_path()),
                    _ => return self.file(SliceFile::Named(naming, Input::Held(held))),
                },
                Err(OfBefore) => return self.file(SliceFile::Named(naming, Input::Held(held))),
            }
        };
        let file = naming.file(&mut self.texts, None, directory);
        self.file(SliceFile::File(file))
    }

    /// The number of a process's working directory.
    fn working_directory(&mut self, process: ThreadKey) -> u32 {
        let known = self.directories.keys().len();
        let number = self.directories.number((process, self.moves));
        if number as usize == known {
            self.steps.push(SliceStep::Directory(process));
        }
        number
    }

    pub(super) fn file(&mut self, file: SliceFile) -> FileId {
        FileId(self.files.number(file) + 1)
    }

    /// The descriptor value for a file.
    pub(super) fn value(&mut self, file: FileId) -> ValueId {
        match file.0.checked_sub(1) {
            Some(file) => self.descriptors.is(file),
            None => ValueId::default(),
        }
    }

    /// The file of a descriptor value; closed and unknown descriptors share one file of unknown
    /// name.
    pub(super) fn known(&mut self, trace: u32, held: ValueId) -> FileId {
        match self.descriptors.known(held) {
            Ok(Some(file)) => FileId(file + 1),
            Ok(None) => {
                let unknown = tracebraid_files::unknown(&mut self.texts, trace);
                self.file(SliceFile::File(unknown))
            }
            Err(OfBefore) => self.file(SliceFile::Held(held, trace)),
        }
    }

    /// The file of a thread's descriptor at a time.
    #[inline(always)]
    pub(super) fn descriptor(
        &mut self,
        (place, thread): (u32, ThreadKey),
        fd: i32,
        time: i64,
    ) -> FileId {
        if let Some(file) = self.cache.find(place, fd) {
            return file;
        }
        let answer = self.descriptors.at(thread, fd, time);
        let file = self.known(thread.trace, answer.value);
        if answer.until.is_none() {
            self.cache.put(place, fd, file);
        }
        file
    }
}
