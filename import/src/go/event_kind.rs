//! The kinds of event records in batches of threads: numbers and arguments.
//!
//! Source: `internal/trace/tracev2/events.go` of Go 1.26, which contains the kinds of all versions
//! since 1.22; numbers have never changed.

/// Arguments of an event record after its time.
pub(super) const MOST_ARGUMENTS: usize = 4;

macro_rules! kinds {
    ($($number:literal $kind:ident $arguments:literal,)*) => {
        /// Kind of an event record that has a time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Kind {
            $($kind,)*
            /// An experimental event, which is not imported.
            Experimental,
        }

        /// The kind with a number, and the number of its arguments after the time.
        pub(super) fn kind_of(number: u8) -> Option<(Kind, usize)> {
            match number {
                $($number => Some((Kind::$kind, $arguments)),)*
                // Spans and objects of the heap, stacks (GODEBUG=traceallocfree=1).
                128 | 129 => Some((Kind::Experimental, 3)),
                131 | 132 | 134 | 135 => Some((Kind::Experimental, 2)),
                130 | 133 | 136 => Some((Kind::Experimental, 1)),
                _ => None,
            }
        }
    };
}

kinds! {
    9 ProcsChange 2,
    10 ProcStart 2,
    11 ProcStop 0,
    12 ProcSteal 3,
    13 ProcStatus 2,
    14 GoCreate 3,
    15 GoCreateSyscall 1,
    16 GoStart 2,
    17 GoDestroy 0,
    18 GoDestroySyscall 0,
    19 GoStop 2,
    20 GoBlock 2,
    21 GoUnblock 3,
    22 GoSyscallBegin 2,
    23 GoSyscallEnd 0,
    24 GoSyscallEndBlocked 0,
    25 GoStatus 3,
    26 StwBegin 2,
    27 StwEnd 0,
    28 GcActive 1,
    29 GcBegin 2,
    30 GcEnd 1,
    31 GcSweepActive 1,
    32 GcSweepBegin 1,
    33 GcSweepEnd 2,
    34 GcMarkAssistActive 1,
    35 GcMarkAssistBegin 1,
    36 GcMarkAssistEnd 0,
    37 HeapAlloc 1,
    38 HeapGoal 1,
    39 GoLabel 1,
    40 UserTaskBegin 4,
    41 UserTaskEnd 2,
    42 UserRegionBegin 3,
    43 UserRegionEnd 3,
    44 UserLog 4,
    45 GoSwitch 2,
    46 GoSwitchDestroy 2,
    47 GoCreateBlocked 3,
    48 GoStatusStack 4,
}

impl Kind {
    /// The argument that is the stack of the current goroutine.
    pub(super) fn stack_argument(self) -> Option<usize> {
        use Kind::*;
        Some(match self {
            StwBegin | GoStop | GoBlock | GcBegin | GoSyscallBegin | UserTaskEnd | ProcsChange => 1,
            GoCreate | GoUnblock | UserRegionBegin | UserRegionEnd | GoCreateBlocked => 2,
            UserTaskBegin | UserLog => 3,
            GcSweepBegin | GcMarkAssistBegin => 0,
            _ => return None,
        })
    }
}
