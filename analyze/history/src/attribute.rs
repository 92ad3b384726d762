//! Attributes: the quantities that have a value at each time.
//!
//! An attribute is a number of 64 bits that sorts by kind, then by machine, then by subject: the
//! [`AttributeKind`] in the highest 8 bits, the machine (index of the trace) in 16, and the thread,
//! CPU or device in 40; a descriptor has its process in 22 of these and its number in 18. As text
//! it is a path, `HOST/thread/TID/state`, where HOST is omitted if there is only one machine.

use std::fmt;

/// The property of a subject that an attribute describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum AttributeKind {
    /// Activity of a CPU: idle, user, system, irq, softirq. Not stored: it follows from others.
    CpuState = 0,
    /// Thread that runs on a CPU; 0 is the idle thread.
    CpuThread = 1,
    /// Number of the hard interrupt whose handler runs on a CPU.
    CpuIrq = 2,
    /// Softirq that runs on a CPU, by name.
    CpuSoftirq = 3,
    /// Frequency of a CPU in kHz.
    CpuFrequency = 4,
    /// Idle state of a CPU, as numbered by its driver.
    CpuSleep = 5,
    /// State of a thread: a [`crate::ThreadState`].
    ThreadState = 16,
    /// CPU on which a thread runs or shall run.
    ThreadCpu = 17,
    /// Name of the system call that a thread is in.
    ThreadSyscall = 18,
    /// Priority of a thread, in the kernel's scale.
    ThreadPriority = 19,
    /// Name of a thread.
    ThreadName = 20,
    /// Process of a thread.
    ThreadProcess = 21,
    /// Process or thread that created a thread.
    ThreadParent = 22,
    /// Bytes that the calls of a thread have read.
    ThreadRead = 23,
    /// Bytes that the calls of a thread have written.
    ThreadWritten = 24,
    /// Requests that a device has not completed.
    DiskDepth = 32,
    /// Requests that a device has completed since the trace began.
    DiskRequests = 33,
    /// Bytes that a device has read since the trace began.
    DiskRead = 34,
    /// Bytes that a device has written since the trace began.
    DiskWritten = 35,
    /// Name of a descriptor: its path, if it has one.
    FileName = 40,
    /// Type of the file that a descriptor refers to: regular file, socket, …
    FileKind = 41,
    /// Bytes read from a descriptor since it was opened.
    FileRead = 42,
    /// Bytes written to a descriptor since it was opened.
    FileWritten = 43,
    /// Calls that used a descriptor since it was opened.
    FileCalls = 44,
    /// An attribute of a user analysis; its path is stored in the file.
    Custom = 48,
}

/// Stored kinds by number.
const KINDS: [Option<AttributeKind>; 64] = {
    let mut kinds = [None; 64];
    let mut at = 0;
    while at < AttributeKind::KEPT.len() {
        kinds[AttributeKind::KEPT[at] as usize] = Some(AttributeKind::KEPT[at]);
        at += 1;
    }
    kinds
};

/// The form in which the values of a kind are stored and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A number.
    Number,
    /// A text.
    Text,
    /// A number; changes are stored as increments.
    Counter,
    /// A [`crate::ThreadState`].
    State,
    /// A number or a text, by change.
    Any,
}

impl Form {
    /// The text that a code stands for, counted from 1; `None` for other values.
    #[inline(always)]
    pub(crate) fn text_of(self, code: u64) -> Option<u64> {
        match self {
            Form::Text if code != 0 => Some(code),
            Form::Any if code & 1 == 1 => Some(code >> 1),
            _ => None,
        }
    }

    /// The code of a text, counted from 1; 0 for no text.
    #[inline(always)]
    pub(crate) fn code_of_text(self, text: u64) -> u64 {
        match self {
            Form::Any if text != 0 => text << 1 | 1,
            _ => text,
        }
    }
}

/// The subject of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// A CPU.
    Cpu,
    /// A thread.
    Thread,
    /// A block device.
    Disk,
    /// A descriptor of a process.
    File,
    /// Defined by a user analysis.
    Custom,
}

impl AttributeKind {
    /// All stored kinds, in the order of attributes.
    pub const KEPT: [AttributeKind; 24] = [
        AttributeKind::CpuThread,
        AttributeKind::CpuIrq,
        AttributeKind::CpuSoftirq,
        AttributeKind::CpuFrequency,
        AttributeKind::CpuSleep,
        AttributeKind::ThreadState,
        AttributeKind::ThreadCpu,
        AttributeKind::ThreadSyscall,
        AttributeKind::ThreadPriority,
        AttributeKind::ThreadName,
        AttributeKind::ThreadProcess,
        AttributeKind::ThreadParent,
        AttributeKind::ThreadRead,
        AttributeKind::ThreadWritten,
        AttributeKind::DiskDepth,
        AttributeKind::DiskRequests,
        AttributeKind::DiskRead,
        AttributeKind::DiskWritten,
        AttributeKind::FileName,
        AttributeKind::FileKind,
        AttributeKind::FileRead,
        AttributeKind::FileWritten,
        AttributeKind::FileCalls,
        AttributeKind::Custom,
    ];

    /// All kinds, including those that follow from others.
    pub fn all() -> impl Iterator<Item = AttributeKind> {
        [AttributeKind::CpuState]
            .into_iter()
            .chain(AttributeKind::KEPT)
    }

    fn of_number(number: u8) -> Option<AttributeKind> {
        KINDS.get(usize::from(number)).copied().flatten()
    }

    /// Subject of the attributes of this kind.
    pub fn subject(self) -> Subject {
        match self as u8 {
            0..16 => Subject::Cpu,
            16..32 => Subject::Thread,
            32..40 => Subject::Disk,
            40..48 => Subject::File,
            _ => Subject::Custom,
        }
    }

    /// Name in paths.
    pub fn name(self) -> &'static str {
        match self {
            AttributeKind::CpuState => "state",
            AttributeKind::CpuThread => "thread",
            AttributeKind::CpuIrq => "irq",
            AttributeKind::CpuSoftirq => "softirq",
            AttributeKind::CpuFrequency => "frequency",
            AttributeKind::CpuSleep => "sleep",
            AttributeKind::ThreadState => "state",
            AttributeKind::ThreadCpu => "cpu",
            AttributeKind::ThreadSyscall => "syscall",
            AttributeKind::ThreadPriority => "priority",
            AttributeKind::ThreadName => "name",
            AttributeKind::ThreadProcess => "process",
            AttributeKind::ThreadParent => "parent",
            AttributeKind::DiskDepth => "depth",
            AttributeKind::DiskRequests => "requests",
            AttributeKind::DiskRead | AttributeKind::ThreadRead => "read",
            AttributeKind::DiskWritten | AttributeKind::ThreadWritten => "written",
            AttributeKind::FileName => "name",
            AttributeKind::FileKind => "kind",
            AttributeKind::FileRead => "read",
            AttributeKind::FileWritten => "written",
            AttributeKind::FileCalls => "calls",
            AttributeKind::Custom => "value",
        }
    }

    /// Whether the numbers measure or count, so that their average is meaningful. Numbers that
    /// identify, such as a thread, an interrupt or a priority, do not. Attributes of user analyses
    /// are assumed to measure.
    pub fn is_quantity(self) -> bool {
        match self {
            AttributeKind::CpuThread | AttributeKind::CpuIrq | AttributeKind::CpuSleep => false,
            AttributeKind::ThreadCpu
            | AttributeKind::ThreadPriority
            | AttributeKind::ThreadProcess
            | AttributeKind::ThreadParent => false,
            AttributeKind::CpuFrequency | AttributeKind::Custom => true,
            _ => matches!(self.form(), Form::Number | Form::Counter),
        }
    }

    /// Form of the values of this kind.
    pub fn form(self) -> Form {
        match self {
            AttributeKind::CpuState
            | AttributeKind::CpuSoftirq
            | AttributeKind::ThreadSyscall
            | AttributeKind::ThreadName => Form::Text,
            AttributeKind::FileName | AttributeKind::FileKind => Form::Text,
            AttributeKind::ThreadState => Form::State,
            AttributeKind::Custom => Form::Any,
            AttributeKind::DiskRequests | AttributeKind::DiskRead | AttributeKind::DiskWritten => {
                Form::Counter
            }
            _ => Form::Number,
        }
    }
}

impl Subject {
    /// All subjects.
    pub const ALL: [Subject; 5] = [
        Subject::Cpu,
        Subject::Thread,
        Subject::Disk,
        Subject::File,
        Subject::Custom,
    ];

    /// Name in paths.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Cpu => "cpu",
            Subject::Thread => "thread",
            Subject::Disk => "disk",
            Subject::File => "file",
            Subject::Custom => "custom",
        }
    }
}

/// A property of a subject on a machine, as 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attribute(u64);

const HOST_BITS: u32 = 16;
const ID_BITS: u32 = 40;
/// Bits of a descriptor's number; the process has the other 22, since there are fewer processes
/// than 2^22.
const FD_BITS: u32 = 18;

impl Attribute {
    /// The attribute of a thread, CPU or device of a machine. Machines are distinct up to 65535.
    #[inline(always)]
    pub fn new(kind: AttributeKind, host: u32, id: u32) -> Attribute {
        let host = u64::from(host & 0xffff);
        Attribute((kind as u64) << (HOST_BITS + ID_BITS) | host << ID_BITS | u64::from(id))
    }

    /// The attribute of a descriptor of a process; `None` for numbers out of range.
    pub fn of_file(kind: AttributeKind, host: u32, process: i32, fd: i32) -> Option<Attribute> {
        let (process, fd) = (u64::try_from(process).ok()?, u64::try_from(fd).ok()?);
        let is_small = process < 1 << (ID_BITS - FD_BITS) && fd < 1 << FD_BITS;
        let nothing = Attribute::new(kind, host, 0);
        is_small.then_some(Attribute(nothing.0 | process << FD_BITS | fd))
    }

    /// Process and number of the descriptor of the attribute.
    pub fn descriptor(self) -> (u32, u32) {
        let id = self.0 & ((1 << ID_BITS) - 1);
        ((id >> FD_BITS) as u32, (id & ((1 << FD_BITS) - 1)) as u32)
    }

    /// The 64 bits that files contain.
    #[inline(always)]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Whether values of the attribute with these bits may be texts.
    #[inline(always)]
    pub(crate) fn may_be_text(bits: u64) -> bool {
        const TEXTS: u64 = 1 << AttributeKind::CpuSoftirq as u64
            | 1 << AttributeKind::ThreadSyscall as u64
            | 1 << AttributeKind::ThreadName as u64
            | 1 << AttributeKind::FileName as u64
            | 1 << AttributeKind::FileKind as u64
            | 1 << AttributeKind::Custom as u64;
        TEXTS >> (bits >> (HOST_BITS + ID_BITS) & 63) & 1 == 1
    }

    /// The form of the attribute with these bits, if its values may be texts.
    #[inline(always)]
    pub(crate) fn text_form(bits: u64) -> Option<Form> {
        const CUSTOM: u64 = AttributeKind::Custom as u64;
        Attribute::may_be_text(bits).then_some(match bits >> (HOST_BITS + ID_BITS) {
            CUSTOM => Form::Any,
            _ => Form::Text,
        })
    }

    /// The attribute with these bits; `None` if they are invalid.
    pub fn of_bits(bits: u64) -> Option<Attribute> {
        let attribute = Attribute(bits);
        let is_small = bits & ((1 << ID_BITS) - 1) <= u64::from(u32::MAX);
        let kind = AttributeKind::of_number((bits >> (HOST_BITS + ID_BITS)) as u8)?;
        (is_small || kind.subject() == Subject::File).then_some(attribute)
    }

    /// The property that the attribute describes.
    pub fn kind(self) -> AttributeKind {
        AttributeKind::of_number((self.0 >> (HOST_BITS + ID_BITS)) as u8)
            .unwrap_or(AttributeKind::CpuState)
    }

    /// Index of the machine's trace.
    pub fn host(self) -> u32 {
        (self.0 >> ID_BITS) as u32 & 0xffff
    }

    /// The thread, CPU or device; for descriptors see [`Attribute::descriptor`].
    pub fn id(self) -> u32 {
        self.0 as u32
    }

    /// The path without the machine: `thread/42/state`, `cpu/3/irq`, `disk/8,0/depth`,
    /// `file/42:3/read`. User analyses define the paths of their attributes: see
    /// [`crate::History::path`].
    pub fn path(self) -> Path {
        Path(self)
    }

    /// The attribute with that path on a machine.
    pub fn parse(path: &str, host: u32) -> Option<Attribute> {
        let mut parts = path.split('/');
        let (subject, id, name) = (parts.next()?, parts.next()?, parts.next()?);
        let subject = Subject::ALL
            .into_iter()
            .find(|known| known.name() == subject)?;
        let mut kinds = AttributeKind::all();
        let kind = kinds.find(|kind| kind.subject() == subject && kind.name() == name)?;
        let attribute = match subject {
            Subject::File => {
                let (process, fd) = id.split_once(':')?;
                Attribute::of_file(kind, host, process.parse().ok()?, fd.parse().ok()?)?
            }
            _ => Attribute::new(kind, host, parse_id(subject, id)?),
        };
        parts.next().is_none().then_some(attribute)
    }
}

/// The number of a thread, CPU or device from a path.
fn parse_id(subject: Subject, text: &str) -> Option<u32> {
    match subject {
        Subject::Disk => {
            let (major, minor) = text.split_once(',')?;
            let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
            (major < 1 << 12 && minor < 1 << 20).then_some(major << 20 | minor)
        }
        Subject::Cpu | Subject::Custom | Subject::File => text.parse().ok(),
        Subject::Thread => text.parse::<i32>().ok().map(|tid| tid as u32),
    }
}

/// An attribute's path, to be displayed.
#[derive(Clone, Copy, Debug)]
pub struct Path(Attribute);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, id) = (self.0.kind(), self.0.id());
        let subject = kind.subject();
        write!(f, "{}/", subject.name())?;
        match subject {
            Subject::Disk => write!(f, "{},{}", id >> 20, id & 0xf_ffff)?,
            Subject::Thread => write!(f, "{}", id as i32)?,
            Subject::File => {
                let (process, fd) = self.0.descriptor();
                write!(f, "{process}:{fd}")?;
            }
            Subject::Cpu | Subject::Custom => write!(f, "{id}")?,
        }
        write!(f, "/{}", kind.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_attributes() {
        for kind in AttributeKind::KEPT {
            for id in [0, 7, 8 << 20 | 1, u32::MAX] {
                let attribute = Attribute::new(kind, 3, id);
                assert_eq!(
                    (attribute.kind(), attribute.host(), attribute.id()),
                    (kind, 3, id)
                );
                assert_eq!(Attribute::of_bits(attribute.bits()), Some(attribute));
                let may_be_text = matches!(kind.form(), Form::Text | Form::Any);
                assert_eq!(Attribute::may_be_text(attribute.bits()), may_be_text);
                assert_eq!(
                    Attribute::parse(&attribute.path().to_string(), 3),
                    Some(attribute)
                );
            }
        }
        let file =
            Attribute::of_file(AttributeKind::FileRead, 3, (1 << 22) - 1, (1 << 18) - 1).unwrap();
        assert_eq!(file.path().to_string(), "file/4194303:262143/read");
        assert_eq!(Attribute::of_bits(file.bits()), Some(file));
        assert_eq!((file.kind(), file.host()), (AttributeKind::FileRead, 3));
        assert_eq!(Attribute::parse("file/4194303:262143/read", 3), Some(file));
        for (process, fd) in [(-1, 0), (0, -1), (1 << 22, 0), (0, 1 << 18)] {
            assert_eq!(
                Attribute::of_file(AttributeKind::FileRead, 0, process, fd),
                None
            );
        }
        let thread = Attribute::new(AttributeKind::ThreadState, 0, 42);
        assert_eq!(thread.path().to_string(), "thread/42/state");
        for wrong in [
            "",
            "cpu",
            "cpu/1",
            "cpu/x/irq",
            "disk/8,0/state",
            "cpu/1/irq/2",
            "disk/8/depth",
            "file/8/read",
            "file/8:-1/read",
            "file/8:x/read",
        ] {
            assert_eq!(Attribute::parse(wrong, 0), None, "{wrong}");
        }
    }
}
