//! Codes of libfxt, and what they mean to a user-level scheduler.

/// Meaning of a record of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A user-level thread is created; its id is the first parameter.
    Birth,
    /// A user-level thread ends; its id is the first parameter.
    Death,
    /// Name of a user-level thread: its id, and four words of characters.
    Name,
    /// The recording LWP switches to the user-level thread of the first parameter.
    Switch,
    /// The recording thread is an LWP: its number, and its thread id or its first user-level thread.
    Lwp,
    /// A function is entered; its address is the first parameter.
    Enter,
    /// A function is left; its address is the first parameter.
    Leave,
    /// Any other event.
    Other,
}

impl Meaning {
    /// The meaning of a code (`fut.h`) with this number of parameters.
    pub(super) fn of(code: u64, params: usize) -> Meaning {
        match code {
            _ if params == 0 => Meaning::Other,
            0xfff9 => Meaning::Birth,
            0xfff8 => Meaning::Death,
            0xfff7 => Meaning::Name,
            0xfff6 => Meaning::Lwp,
            0x31a => Meaning::Switch,
            0x320 => Meaning::Enter,
            0x420 => Meaning::Leave,
            _ => Meaning::Other,
        }
    }

    /// The event class.
    pub(super) fn class(self) -> Option<&'static str> {
        match self {
            Meaning::Birth => Some("tracebraid:ult_create"),
            Meaning::Death => Some("tracebraid:ult_exit"),
            Meaning::Name => Some("tracebraid:ult_name"),
            Meaning::Switch => Some("tracebraid:ult_switch"),
            Meaning::Lwp => Some("tracebraid:lwp_begin"),
            Meaning::Enter => Some("tracebraid:prof_in"),
            Meaning::Leave => Some("tracebraid:prof_out"),
            Meaning::Other => None,
        }
    }
}

/// Name of a code of a program (`fut.h`).
pub(super) fn user_name(code: u64) -> Option<&'static str> {
    Some(match code {
        0xffff => "fut_setup",
        0xfffe => "fut_keychange",
        0xfffd => "fut_reset",
        0xfffc => "fut_calibrate0",
        0xfffb => "fut_calibrate1",
        0xfffa => "fut_calibrate2",
        0xfff9 => "fut_thread_birth",
        0xfff8 => "fut_thread_death",
        0xfff7 => "fut_set_thread_name",
        0xfff6 => "fut_new_lwp",
        0xfff5 => "fut_start_flush",
        0xfff4 => "fut_stop_flush",
        0xffef => "fut_rqs_newlevel",
        0xffee => "fut_rqs_newlwprq",
        0xffed => "fut_rqs_newrq",
        0x31a => "fut_switch_to",
        0x301 => "fut_main_entry",
        0x401 => "fut_main_exit",
        0x320 => "fut_gcc_instrument_entry",
        0x420 => "fut_gcc_instrument_exit",
        _ => return None,
    })
}

/// Name of a code of the kernel (`fkt.h`).
pub(super) fn kernel_name(code: u64) -> Option<&'static str> {
    Some(match code {
        0..0x200 => "system_call",
        0x200..0x220 => "trap",
        0x220..0x300 => "irq",
        0xff_ffff => "fkt_setup",
        0xff_fffe => "fkt_keychange",
        0xff_fffd => "fkt_reset",
        0xff_fff1 => "do_fork",
        0xff_fff0 => "do_execve",
        0xff_ffef => "end_of_pid",
        0xff_ffee => "user_fork",
        0x300 => "ret_from_sys_call",
        0x31a => "switch_to",
        0x320 => "gcc_instrument_entry",
        0x420 => "gcc_instrument_exit",
        _ => return None,
    })
}
