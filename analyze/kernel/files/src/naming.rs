//! Names of objects that calls create.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Deed, Text, Texts};
use tracebraid_kernel_model::{FdType, Syscall};

use crate::item::Made;
use crate::names::{self, File, UNKNOWN};

/// An object that a call creates, as far as the call alone determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Naming {
    /// Index of the trace.
    pub trace: u32,
    call: Syscall,
    deed: Deed,
    kind: FdType,
    /// Path by which the object is opened, or address to which it is connected.
    pub text: Text,
    /// Name of the peer.
    pub peer_text: Text,
    peer: Option<FdType>,
}

/// The other object on which the name depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// None.
    Nothing,
    /// The file of the descriptor when the call began, which is the object itself.
    Same,
    /// The listening socket in its current state.
    Listener,
    /// The socket in its state when the call began.
    Socket,
    /// The directory that the path is relative to.
    Directory,
}

impl Naming {
    /// The object created by a call on the trace with index `trace`.
    pub fn new(trace: u32, made: &Made) -> Naming {
        let open = &made.entered.open;
        Naming {
            trace,
            call: open.call,
            deed: open.deed,
            kind: open.kind,
            text: made.entered.text,
            peer_text: made.exited.text,
            peer: made.exited.exit.peer,
        }
    }

    /// The object on which the name depends, for a call with this result.
    pub fn need(&self, result: i64) -> Need {
        match self.deed {
            Deed::Duplicate | Deed::DuplicateTo => Need::Same,
            Deed::Accept if result < 0 => Need::Same,
            Deed::Accept => Need::Listener,
            Deed::Make if self.text != Text::NONE => Need::Directory,
            Deed::Make | Deed::MakePair => Need::Nothing,
            _ => Need::Socket,
        }
    }

    /// The file, from the listening or connected socket, or the directory.
    pub fn file(&self, texts: &mut Texts, socket: Option<File>, directory: Option<Text>) -> File {
        let (name, kind) = match self.deed {
            Deed::Accept => {
                let usual = match socket.map(|socket| socket.kind) {
                    None | Some(FdType::Unknown) => FdType::Socket,
                    Some(kind) => kind,
                };
                (self.peer_text, self.peer.unwrap_or(usual))
            }
            Deed::Make if self.text != Text::NONE => {
                let path = texts.get(self.text).unwrap_or_default();
                let kind = match self.kind {
                    FdType::File => FdType::of_opened(path.as_bytes()),
                    kind => kind,
                };
                (names::of_path(texts, self.text, directory), kind)
            }
            Deed::Make | Deed::MakePair => (Text::NONE, self.kind),
            // `connect` names its socket.
            _ => match (self.text.some(), socket) {
                (Some(address), _) => (address, FdType::Network),
                (None, Some(socket)) => (socket.name, socket.kind),
                (None, None) => (Text::NONE, FdType::Socket),
            },
        };
        let name = name
            .some()
            .unwrap_or_else(|| texts.number(self.call.unnamed_object(kind).unwrap_or(UNKNOWN)));
        let trace = self.trace;
        File { trace, name, kind }
    }
}
