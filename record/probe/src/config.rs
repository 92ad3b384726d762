//! Options of a session: lines of `key = value` in `DIR/probe.conf`; `#` starts a comment.
//!
//! | key | values | default |
//! |---|---|---|
//! | `mode` | `grow`: files grow up to `limit`; `discard`: a buffer of fixed size, what finds no room is lost; `ring`: a buffer of fixed size, the newest stays | `grow` |
//! | `packet_size` | bytes of a packet at most, 512 to 8 MiB; `K` and `M` may follow | `64K` |
//! | `packets` | packets of a buffer in modes `discard` and `ring` | `16` |
//! | `limit` | bytes that a process may write in mode `grow` | `4096M` |
//! | `clock` | `auto`, `monotonic` | `auto` |
//! | `clock_offset` | nanoseconds from CLOCK_MONOTONIC to the time since 1970, to be the same in all traces of a session | measured |
//! | `correlation` | `on`, `off`: event records that compare clocks | `on` |
//! | `cost` | nanoseconds that a probe takes, for the environment of the trace | |
//! | `ended` | `yes`: the recording is over, no process records any more | `no` |
//! | `recorder` | process id of `tracebraid record`, for readers: `ended` is then missing only if the recorder was killed, or runs | |
//! | `enable`, `disable` | pattern of event classes, may be repeated; the last one that matches decides | `enable = *` |
//!
//! The environment variable `TRACEBRAID_PROBE` overrides options: same syntax, with `;` in place of
//! line ends. Unknown options are ignored.

use crate::text::Text;

/// Behaviour when a buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Grow,
    Discard,
    Ring,
}

pub(crate) type Rules = Text<3072>;

pub(crate) struct Config {
    pub(crate) mode: Mode,
    pub(crate) packet_size: usize,
    pub(crate) packets: usize,
    pub(crate) limit: u64,
    pub(crate) cycles: bool,
    pub(crate) clock_offset: Option<u64>,
    pub(crate) cost: Option<u64>,
    pub(crate) correlation: bool,
    pub(crate) ended: bool,
    pub(crate) rules: Rules,
    has_enable: bool,
}

/// Maximum number of bytes of `probe.conf` that are read; the rest is ignored.
pub(crate) const MOST_BYTES: usize = 8192;

/// Smaller packets have no room for longer event records.
const LEAST_PACKET: u64 = 512;
/// The maximum that the reservation word can address, with some reserve.
pub(crate) const MOST_PACKET: u64 = 8 << 20;

impl Config {
    pub(crate) const fn new() -> Config {
        Config {
            mode: Mode::Grow,
            packet_size: 64 << 10,
            packets: 16,
            limit: 4 << 30,
            cycles: true,
            clock_offset: None,
            cost: None,
            correlation: true,
            ended: false,
            rules: Text::new(),
            has_enable: false,
        }
    }

    /// Parses options; later options override earlier ones.
    pub(crate) fn take(&mut self, text: &[u8]) {
        for line in text.split(is_end_of_line) {
            if let Some((key, value)) = option(line) {
                self.set(key, value);
            }
        }
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        match (key, value) {
            (b"mode", b"grow") => self.mode = Mode::Grow,
            (b"mode", b"discard") => self.mode = Mode::Discard,
            (b"mode", b"ring") => self.mode = Mode::Ring,
            (b"clock", _) => self.cycles = value != b"monotonic",
            (b"ended", _) => self.ended = value == b"yes",
            (b"correlation", _) => self.correlation = value != b"off",
            (b"enable", _) => {
                self.has_enable = true;
                self.rule(b'+', value);
            }
            (b"disable", _) => self.rule(b'-', value),
            _ => {
                if let Some(number) = number(value) {
                    self.set_number(key, number);
                }
            }
        }
    }

    fn set_number(&mut self, key: &[u8], number: u64) {
        match key {
            b"packet_size" => {
                self.packet_size = (number.clamp(LEAST_PACKET, MOST_PACKET) & !7) as usize
            }
            b"packets" => self.packets = number.clamp(2, 1 << 20) as usize,
            b"limit" => self.limit = number,
            b"clock_offset" => self.clock_offset = Some(number),
            b"cost" => self.cost = Some(number),
            _ => {}
        }
    }

    fn rule(&mut self, sign: u8, pattern: &[u8]) {
        self.rules.push(&[sign]);
        self.rules.push(pattern);
        self.rules.push(b"\n");
    }

    /// Appends the effective rules to `rules`. By default all classes are enabled unless an option
    /// enables some by name; after the recording has ended none is.
    pub(crate) fn all_rules(&self, rules: &mut Rules) {
        if self.ended {
            return;
        }
        if !self.has_enable {
            rules.push(b"+*\n");
        }
        rules.push(self.rules.bytes());
    }
}

/// True at the end of an option.
pub(crate) fn is_end_of_line(byte: &u8) -> bool {
    matches!(byte, b'\n' | b';')
}

/// The key and the value in a line; `None` if it has no option.
pub(crate) fn option(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.split(|&byte| byte == b'#').next()?;
    let at = line.iter().position(|&byte| byte == b'=')?;
    let (key, value) = line.split_at_checked(at)?;
    Some((key.trim_ascii(), value.get(1..)?.trim_ascii()))
}

fn number(text: &[u8]) -> Option<u64> {
    let (digits, unit) = match text.split_last()? {
        (b'K', digits) => (digits, 1 << 10),
        (b'M', digits) => (digits, 1 << 20),
        (b'G', digits) => (digits, 1 << 30),
        _ => (text, 1),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value: u64 = 0;
    for &digit in digits {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit < 10)?;
        value = value.checked_mul(10)?.checked_add(digit.into())?;
    }
    value.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_options_and_passes_over_the_rest() {
        let mut config = Config::new();
        config
            .take(b"# of a test\nmode = ring\npacket_size = 4K # small\npackets=3\nlimit = 12q\nsurprise\nenable = app:*\n");
        config.take(b"disable=app:loud;packets=5");
        assert_eq!(config.mode, Mode::Ring);
        assert_eq!(
            (config.packet_size, config.packets, config.limit),
            (4096, 5, 4 << 30)
        );
        let mut rules = Rules::new();
        config.all_rules(&mut rules);
        assert_eq!(rules.bytes(), b"+app:*\n-app:loud\n");
    }

    #[test]
    fn sizes_stay_within_what_the_reservation_can_address() {
        let mut config = Config::new();
        config.take(b"packet_size = 1\npackets = 0");
        assert_eq!((config.packet_size, config.packets), (512, 2));
        config.take(b"packet_size = 99999999999999M\n");
        assert_eq!(config.packet_size, 512);
        config.take(b"packet_size = 9999M\n");
        assert_eq!(config.packet_size, 8 << 20);
    }
}
