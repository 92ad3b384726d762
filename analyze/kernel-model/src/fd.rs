//! What a file descriptor is.

use serde::{Deserialize, Serialize};

/// What a file descriptor refers to, as far as the trace tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FdType {
    /// Opened by a path: regular files, directories, devices, `/proc`.
    Disk,
    /// A socket of the Internet families or a packet socket.
    Network,
    /// A socket of the Unix family.
    Unix,
    /// Another socket, or one whose family the trace does not tell.
    Socket,
    /// An end of a pipe without a name.
    Pipe,
    /// Neither file nor socket nor pipe: eventfd, epoll, timerfd, signalfd, inotify, memfd, ...
    Anonymous,
    /// The trace does not tell.
    #[default]
    Unknown,
}

impl FdType {
    /// All, in the order of reports.
    pub const ALL: [FdType; 7] = [
        FdType::Disk,
        FdType::Network,
        FdType::Unix,
        FdType::Socket,
        FdType::Pipe,
        FdType::Anonymous,
        FdType::Unknown,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            FdType::Disk => "disk",
            FdType::Network => "network",
            FdType::Unix => "unix",
            FdType::Socket => "socket",
            FdType::Pipe => "pipe",
            FdType::Anonymous => "anonymous",
            FdType::Unknown => "unknown",
        }
    }

    /// By the address family of a socket.
    pub fn of_family(family: i64) -> FdType {
        match family {
            1 => FdType::Unix,
            // AF_INET, AF_INET6, AF_PACKET.
            2 | 10 | 17 => FdType::Network,
            _ => FdType::Socket,
        }
    }

    /// By the path that a state dump gives.
    pub fn of_path(path: &[u8]) -> FdType {
        match path {
            [b'/', rest @ ..] if rest.starts_with(b"memfd:") => FdType::Anonymous,
            [b'/', ..] => FdType::Disk,
            path if path.starts_with(b"socket:") => FdType::Socket,
            path if path.starts_with(b"pipe:") => FdType::Pipe,
            path if path.starts_with(b"anon_inode:") || path.starts_with(b"inotify") => FdType::Anonymous,
            _ => FdType::Unknown,
        }
    }
}
