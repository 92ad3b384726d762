//! Fields of system calls that are decoded from memory to which an argument points.
//!
//! Layouts are those of lttng-modules 2.13. Memory that could not be read is recorded as missing.

use crate::part::{Count, Part};

/// The structure of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A socket address to connect to (`true`), or of a peer (`false`).
    Address(bool),
    /// A field of that name: the number to which the argument points.
    Pointed(&'static str),
    /// A field of that name: two file descriptors.
    Pair(&'static str),
    EpollOperation,
    EpollEvent,
    EpollEvents,
    /// The requests of `poll`, or its results; also records whether there were more entries, except
    /// at the exit of `poll`.
    PollFds {
        asked: bool,
        tells_more: bool,
    },
    /// True if a set had more entries than were read.
    Overflow,
    /// A field of that name: a set of file descriptors.
    FdSet(&'static str),
}

/// Maximum number of recorded entries of a list.
const MOST_ENTRIES: usize = 64;
/// `struct epoll_event`, which is packed on x86-64 only.
const EPOLL_EVENT: usize = if cfg!(target_arch = "x86_64") { 12 } else { 16 };
const EPOLL_DATA: usize = EPOLL_EVENT - 8;
/// `struct pollfd`.
const POLL_FD: usize = 8;

const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

const EPOLL_STRUCT: &str = "struct { struct { x64 _u64; i32 _fd; } _data_union; x32 _raw_events; \
     struct { bit _EPOLLIN; bit _EPOLLPRI; bit _EPOLLOUT; bit _EPOLLERR; bit4 _padding; } _events; }";
const POLL_STRUCT: &str = "struct { i32 _fd; x16 _raw_events; \
     struct { bit _POLLIN; bit _POLLPRI; bit _POLLOUT; bit _POLLERR; bit _POLLHUP; bit3 _padding; } _events; }";

impl Shape {
    /// The shape with a name in `calls.txt`.
    pub(crate) fn named(name: &'static str) -> Option<Shape> {
        Some(match name {
            "to" => Shape::Address(true),
            "from" => Shape::Address(false),
            "upeer_addrlen" => Shape::Pointed(name),
            "fildes" | "socket" => Shape::Pair(name),
            "epoll_op" => Shape::EpollOperation,
            "epoll_event" => Shape::EpollEvent,
            "epoll_events" => Shape::EpollEvents,
            "fds_asked" => Shape::PollFds {
                asked: true,
                tells_more: true,
            },
            "fds_found" => Shape::PollFds {
                asked: false,
                tells_more: false,
            },
            "fds_found_of" => Shape::PollFds {
                asked: false,
                tells_more: true,
            },
            "overflow" => Shape::Overflow,
            "readfds" | "writefds" | "exceptfds" => Shape::FdSet(name),
            _ => return None,
        })
    }

    /// The memory that the shape is decoded from.
    pub(crate) fn part(self) -> Option<Part> {
        let (count, unit) = match self {
            Shape::Address(true) => (Count::Argument(2), 1),
            Shape::Address(false) => (Count::Pointed, 1),
            Shape::Pointed(_) => (Count::One, 4),
            Shape::Pair(_) => (Count::One, 8),
            Shape::EpollEvent => (Count::One, EPOLL_EVENT),
            Shape::EpollEvents => (Count::Result, EPOLL_EVENT),
            Shape::PollFds { .. } => (Count::Argument(1), POLL_FD),
            Shape::FdSet(_) => (Count::Bits, 1),
            Shape::EpollOperation | Shape::Overflow => return None,
        };
        let unit = unit as u8;
        Some(Part::Bytes { count, unit })
    }

    /// Members of a structure, in TSDL.
    pub(crate) fn tsdl(self) -> String {
        match self {
            Shape::Address(to) => format!(
                "u16 _family; net16 _{}; u32 __v4addr_length; net8 _v4addr[__v4addr_length]; \
                 u32 __v6addr_length; net16 _v6addr[__v6addr_length];",
                if to { "dport" } else { "sport" }
            ),
            Shape::Pointed(name) => format!("i32 _{name};"),
            Shape::Pair(name) => format!("i32 _{name}[2];"),
            Shape::EpollOperation => {
                "enum : i32 { \"EPOLL_CTL_ADD\" = 1, \"EPOLL_CTL_DEL\" = 2, \"EPOLL_CTL_MOD\" = 3 } _op_enum;"
                    .into()
            }
            Shape::EpollEvent => format!("{EPOLL_STRUCT} _event;"),
            Shape::EpollEvents => {
                format!("u32 _fds_length; u8 _overflow; {EPOLL_STRUCT} _fds[_fds_length];")
            }
            Shape::PollFds { tells_more, .. } => format!(
                "u32 _fds_length; {}{POLL_STRUCT} _fds[_fds_length];",
                if tells_more { "u8 _overflow; " } else { "" }
            ),
            Shape::Overflow => "u8 _overflow;".into(),
            Shape::FdSet(name) => format!("u8 __{name}_length; x8 _{name}[__{name}_length];"),
        }
    }

    /// Writes the field: `value` is the argument, `part` the memory, if the shape needs any.
    pub(crate) fn write(self, value: u64, part: &[u8], to: &mut Vec<u8>) {
        match self {
            Shape::Address(_) => write_address(part, to),
            Shape::Pointed(_) => to.extend_from_slice(&bytes::<4>(part, 0)),
            Shape::Pair(_) => {
                let mut pair = [0; 8];
                copy(&mut pair, part);
                to.extend_from_slice(&pair);
            }
            Shape::EpollOperation => to.extend_from_slice(&(value as i32).to_le_bytes()),
            Shape::EpollEvent => write_epoll(part, to),
            Shape::EpollEvents => write_list(part, EPOLL_EVENT, true, to, write_epoll),
            Shape::PollFds { asked, tells_more } => {
                write_list(part, POLL_FD, tells_more, to, |entry, to| {
                    write_poll(entry, asked, to)
                });
            }
            Shape::Overflow => to.push(0),
            Shape::FdSet(_) => {
                let part = part.get(..usize::from(u8::MAX)).unwrap_or(part);
                to.push(part.len() as u8);
                to.extend_from_slice(part);
            }
        }
    }
}

/// Copies as many bytes as both slices have.
fn copy(to: &mut [u8], from: &[u8]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
}

/// `N` bytes from an offset on; missing bytes are zero.
fn bytes<const N: usize>(part: &[u8], at: usize) -> [u8; N] {
    let mut found = [0; N];
    copy(&mut found, part.get(at..).unwrap_or_default());
    found
}

fn write_address(part: &[u8], to: &mut Vec<u8>) {
    let family = u16::from_le_bytes(bytes(part, 0));
    let is_internet = matches!(family, AF_INET | AF_INET6);
    let port: [u8; 2] = if is_internet { bytes(part, 2) } else { [0; 2] };
    to.extend_from_slice(&family.to_le_bytes());
    to.extend_from_slice(&port);
    if family == AF_INET {
        to.extend_from_slice(&4u32.to_le_bytes());
        to.extend_from_slice(&bytes::<4>(part, 4));
    } else {
        to.extend_from_slice(&0u32.to_le_bytes());
    }
    if family == AF_INET6 {
        to.extend_from_slice(&8u32.to_le_bytes());
        to.extend_from_slice(&bytes::<16>(part, 8));
    } else {
        to.extend_from_slice(&0u32.to_le_bytes());
    }
}

fn write_list(
    part: &[u8],
    size: usize,
    tells_more: bool,
    to: &mut Vec<u8>,
    entry: impl Fn(&[u8], &mut Vec<u8>),
) {
    let entries = part.chunks_exact(size);
    let count = entries.len().min(MOST_ENTRIES);
    to.extend_from_slice(&(count as u32).to_le_bytes());
    if tells_more {
        to.push(u8::from(entries.len() > count));
    }
    entries.take(count).for_each(|found| entry(found, to));
}

fn write_epoll(event: &[u8], to: &mut Vec<u8>) {
    let events: [u8; 4] = bytes(event, 0);
    let data: [u8; 8] = bytes(event, EPOLL_DATA);
    to.extend_from_slice(&data);
    to.extend_from_slice(&bytes::<4>(&data, 0));
    to.extend_from_slice(&events);
    to.push(events[0] & 0xf);
}

fn write_poll(entry: &[u8], asked: bool, to: &mut Vec<u8>) {
    let events: [u8; 2] = bytes(entry, if asked { 4 } else { 6 });
    to.extend_from_slice(&bytes::<4>(entry, 0));
    to.extend_from_slice(&events);
    to.push(events[0] & 0x1f);
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: Shape = Shape::PollFds {
        asked: true,
        tells_more: true,
    };
    const FOUND: Shape = Shape::PollFds {
        asked: false,
        tells_more: false,
    };

    fn written(shape: Shape, value: u64, part: &[u8]) -> Vec<u8> {
        let mut to = Vec::new();
        shape.write(value, part, &mut to);
        to
    }

    #[test]
    fn addresses_have_the_bytes_of_their_family_only() {
        let v4 = [2, 0, 0x1f, 0x90, 127, 0, 0, 1, 9, 9, 9, 9];
        let expected = [&[2, 0, 0x1f, 0x90, 4, 0, 0, 0, 127, 0, 0, 1][..], &[0; 4]].concat();
        assert_eq!(written(Shape::Address(true), 0, &v4), expected);
        let mut v6 = [0u8; 28];
        (v6[0], v6[2], v6[3], v6[23]) = (10, 0, 80, 1);
        let mut address = [0u8; 16];
        address[15] = 1;
        let expected = [&[10, 0, 0, 80, 0, 0, 0, 0, 8, 0, 0, 0][..], &address].concat();
        assert_eq!(written(Shape::Address(true), 0, &v6), expected);
        assert_eq!(
            written(Shape::Address(false), 0, &[1, 0, b'/', b't']),
            [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(written(Shape::Address(false), 0, &[]), [0; 12]);
    }

    #[test]
    fn lists_tell_how_many_there_are() {
        let fds = [3, 0, 0, 0, 1, 0, 0x11, 0, 4, 0, 0, 0, 4, 0, 0, 0];
        let asked = [2, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 1, 4, 0, 0, 0, 4, 0, 4];
        assert_eq!(written(ASKED, 0, &fds), asked);
        let found = [2, 0, 0, 0, 3, 0, 0, 0, 0x11, 0, 0x11, 4, 0, 0, 0, 0, 0, 0];
        assert_eq!(written(FOUND, 0, &fds), found);
        let many = vec![0; POLL_FD * (MOST_ENTRIES + 1)];
        assert_eq!(
            written(ASKED, 0, &many)[..5],
            [MOST_ENTRIES as u8, 0, 0, 0, 1]
        );
    }

    #[test]
    fn memory_that_could_not_be_read_is_none() {
        assert_eq!(written(Shape::Pair("fildes"), 0, &[]), [0; 8]);
        assert_eq!(written(Shape::EpollEvents, 0, &[]), [0; 5]);
        assert_eq!(written(Shape::FdSet("readfds"), 0, &[]), [0]);
        assert_eq!(
            written(Shape::EpollEvent, 0, &[1, 0]),
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]
        );
    }
}
