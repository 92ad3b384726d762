//! Types of file descriptors.

use serde::{Deserialize, Serialize};

/// Type of the file that a descriptor refers to, as far as the trace shows.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum FdType {
    /// Opened by a path, and neither terminal nor virtual: regular files, directories, block
    /// devices. Not named after the disk: reads from the page cache do not access it.
    File,
    /// A terminal.
    Terminal,
    /// Files of the kernel itself, or devices without a medium: `/proc`, `/sys`, `/dev/null`,
    /// `/dev/shm`.
    Virtual,
    /// A socket of the Internet families or a packet socket.
    Network,
    /// A socket of the Unix family.
    Unix,
    /// Another socket, or a socket of unknown family.
    Socket,
    /// An end of an unnamed pipe.
    Pipe,
    /// Neither file nor socket nor pipe: eventfd, epoll, timerfd, signalfd, inotify, memfd, ...
    Anonymous,
    /// The trace does not show the type.
    #[default]
    Unknown,
}

impl FdType {
    /// All types, in the order of reports.
    pub const ALL: [FdType; 9] = [
        FdType::File,
        FdType::Terminal,
        FdType::Virtual,
        FdType::Network,
        FdType::Unix,
        FdType::Socket,
        FdType::Pipe,
        FdType::Anonymous,
        FdType::Unknown,
    ];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            FdType::File => "file",
            FdType::Terminal => "terminal",
            FdType::Virtual => "virtual",
            FdType::Network => "network",
            FdType::Unix => "unix",
            FdType::Socket => "socket",
            FdType::Pipe => "pipe",
            FdType::Anonymous => "anonymous",
            FdType::Unknown => "unknown",
        }
    }

    /// Type for the address family of a socket.
    pub fn of_family(family: i64) -> FdType {
        match family {
            1 => FdType::Unix,
            // AF_INET, AF_INET6, AF_PACKET.
            2 | 10 | 17 => FdType::Network,
            _ => FdType::Socket,
        }
    }

    /// True if the file was opened by a path.
    pub fn has_path(self) -> bool {
        matches!(self, FdType::File | FdType::Terminal | FdType::Virtual)
    }

    /// Type for the path that a program opens. Relative paths are not resolved and count as files.
    pub fn of_opened(path: &[u8]) -> FdType {
        let is_below = |directory: &str| {
            let rest = path.strip_prefix(directory.as_bytes());
            rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
        };
        match path.strip_prefix(b"/dev/") {
            Some(device) => of_device(device),
            None if ["/proc", "/sys", "/dev"].into_iter().any(is_below) => FdType::Virtual,
            None => FdType::File,
        }
    }

    /// Type for the path in a state dump.
    pub fn of_path(path: &[u8]) -> FdType {
        match path {
            [b'/', rest @ ..] if rest.starts_with(b"memfd:") => FdType::Anonymous,
            [b'/', ..] => FdType::of_opened(path),
            path if path.starts_with(b"socket:") => FdType::Socket,
            path if path.starts_with(b"pipe:") => FdType::Pipe,
            path if path.starts_with(b"anon_inode:") || path.starts_with(b"inotify") => {
                FdType::Anonymous
            }
            _ => FdType::Unknown,
        }
    }
}

/// Prefixes of names of block devices (Documentation/admin-guide/devices.txt), and of directories
/// with links to them.
const BLOCK_DEVICES: [&str; 23] = [
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "mtdblock", "loop", "dm-", "md", "nbd", "ram",
    "zram", "sr", "scd", "fd", "bcache", "drbd", "rbd", "pmem", "mapper/", "disk/", "block/",
];

/// Prefixes of names of terminals.
const TERMINALS: [&str; 6] = ["tty", "pts", "ptmx", "pty", "console", "hvc"];

/// Type for the path below `/dev/`.
fn of_device(name: &[u8]) -> FdType {
    let begins = |list: &[&str]| list.iter().any(|start| name.starts_with(start.as_bytes()));
    if begins(&TERMINALS) {
        return FdType::Terminal;
    }
    // Links to the descriptors of a process may refer to any file.
    let is_link = name == b"fd" || name.starts_with(b"fd/");
    match begins(&BLOCK_DEVICES) && !is_link {
        true => FdType::File,
        false => FdType::Virtual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_tell_what_they_lead_to() {
        for (path, expected) in [
            ("/etc/passwd", FdType::File),
            ("relative", FdType::File),
            ("/devel/null", FdType::File),
            ("/dev/sda1", FdType::File),
            ("/dev/nvme0n1", FdType::File),
            ("/dev/mapper/root", FdType::File),
            ("/dev/pts/1", FdType::Terminal),
            ("/dev/tty", FdType::Terminal),
            ("/dev/ttyS0", FdType::Terminal),
            ("/dev/console", FdType::Terminal),
            ("/dev/null", FdType::Virtual),
            ("/dev/zero", FdType::Virtual),
            ("/dev/urandom", FdType::Virtual),
            ("/dev/shm/a", FdType::Virtual),
            ("/dev/fd/3", FdType::Virtual),
            ("/dev", FdType::Virtual),
            ("/proc/stat", FdType::Virtual),
            ("/proc", FdType::Virtual),
            ("/process", FdType::File),
            ("/sys/kernel/debug", FdType::Virtual),
            ("/system", FdType::File),
        ] {
            assert_eq!(
                FdType::of_path(path.as_bytes()),
                if path == "relative" {
                    FdType::Unknown
                } else {
                    expected
                }
            );
            assert_eq!(FdType::of_opened(path.as_bytes()), expected, "{path}");
        }
        assert_eq!(FdType::of_path(b"/memfd:x"), FdType::Anonymous);
        assert_eq!(FdType::of_path(b"pipe:[7]"), FdType::Pipe);
    }

    #[test]
    fn all_are_in_the_order_of_reports() {
        assert!(FdType::ALL.is_sorted());
    }
}
