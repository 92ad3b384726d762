//! Times at the beginning of lines. Except for the nanoseconds, a time is formatted once per
//! second.

use jiff::tz::TimeZone;

use super::buffer::{Buffer, Padded};
use super::slot::Short;
use super::style::Palette;

const SECOND: i64 = 1_000_000_000;

/// Marks a missing time or difference; babeltrace2 uses the same value.
const NONE: u64 = u64::MAX;

/// Format of times.
#[derive(Clone, Debug)]
pub(crate) struct StampOptions {
    /// Show the clock's value instead of a time.
    pub(crate) cycles: bool,
    /// Show seconds since the origin instead of a time of day.
    pub(crate) seconds: bool,
    /// Show the date before the time of day.
    pub(crate) date: bool,
    /// Show the difference from the previous line.
    pub(crate) delta: bool,
    /// Write `timestamp = ` instead of brackets.
    pub(crate) names: bool,
    /// Time zone of dates and times of day.
    pub(crate) zone: TimeZone,
    pub(crate) palette: Palette,
}

/// Formats times and differences.
#[derive(Debug)]
pub(crate) struct Stamp {
    options: StampOptions,
    /// Text before the nanoseconds, for the second that begins at `base`.
    prefix: Padded,
    base: i64,
    /// Text between the nanoseconds and the digits of the difference.
    middle: Padded,
    /// `middle` with the seconds of the difference, if these are 0.
    middle_zero: Padded,
    /// Text after the stamp, which the caller must put.
    end: Vec<u8>,
    /// `prefix` and `middle_zero`, if both are short.
    short: Option<(Short, Short)>,
    /// The last time or clock value, and its difference from the one before.
    last: u64,
    delta: u64,
    negative_shown: bool,
}

impl Stamp {
    pub(crate) fn new(options: StampOptions) -> Self {
        let mut middle = options.palette.reset.as_bytes().to_vec();
        let mut end = Vec::new();
        if !options.names {
            middle.extend(b"] ");
        }
        if options.delta && options.names {
            middle.extend(b", ");
            middle.extend(options.palette.name.as_bytes());
            middle.extend(b"delta");
            middle.extend(options.palette.reset.as_bytes());
            middle.extend(b" = +");
        } else if options.delta {
            middle.extend(b"(+");
            end.extend(b") ");
        }
        let mut middle_zero = middle.clone();
        middle_zero.extend(b"0.");
        Stamp {
            options,
            prefix: Padded::default(),
            base: i64::MIN,
            middle: Padded::new(&middle),
            middle_zero: Padded::new(&middle_zero),
            end,
            short: None,
            last: NONE,
            delta: NONE,
            negative_shown: false,
        }
    }

    /// Difference from the last time. If that has the value [`NONE`], the previous difference is
    /// shown again, as in babeltrace2.
    #[inline(always)]
    fn step(&mut self, now: u64) -> u64 {
        if self.last != NONE {
            self.delta = now.wrapping_sub(self.last);
        }
        self.last = now;
        self.delta
    }

    /// Text that must follow the stamp.
    pub(crate) fn end(&self) -> &[u8] {
        &self.end
    }

    /// Puts the time of an event record and its difference from the previous one.
    #[inline]
    pub(crate) fn put(&mut self, buffer: &mut Buffer, time: i64, cycles: u64) {
        if self.options.cycles {
            return self.put_cycles(buffer, cycles);
        }
        let mut nanoseconds = time.wrapping_sub(self.base) as u64;
        if nanoseconds >= SECOND as u64 || time < 0 {
            nanoseconds = self.render(time);
        }
        let delta = self.step(time as u64);
        if let (Some((prefix, middle)), true) = (&self.short, delta < SECOND as u64) {
            return buffer.put_number(|mut slot| {
                let at = slot.short_literal(0, prefix);
                let at = slot.nine(at, nanoseconds as u32);
                let at = slot.short_literal(at, middle);
                slot.nine(at, delta as u32)
            });
        }
        buffer.put_literal(&self.prefix);
        buffer.put_nine(nanoseconds as u32);
        if self.options.delta {
            if delta < SECOND as u64 {
                buffer.put_literal(&self.middle_zero);
                buffer.put_nine(delta as u32);
            } else {
                buffer.put_literal(&self.middle);
                put_long_delta(buffer, delta);
            }
        } else {
            buffer.put_literal(&self.middle);
        }
    }

    fn put_cycles(&mut self, buffer: &mut Buffer, cycles: u64) {
        buffer.put(&self.open());
        buffer.put(format!("{cycles:020}").as_bytes());
        buffer.put_literal(&self.middle);
        if self.options.delta {
            match self.step(cycles) {
                NONE => buffer.put(b"????????????"),
                delta => buffer.put(format!("{delta:012}").as_bytes()),
            }
        }
    }

    /// Text before the time.
    fn open(&self) -> Vec<u8> {
        let palette = self.options.palette;
        let before = if self.options.names {
            format!(
                "{}timestamp{} = {}",
                palette.name, palette.reset, palette.time
            )
        } else {
            format!("[{}", palette.time)
        };
        before.into_bytes()
    }

    /// Formats the prefix for another second; returns the nanoseconds to put after it.
    #[cold]
    fn render(&mut self, time: i64) -> u64 {
        let (seconds, nanoseconds) = (
            (time / SECOND).unsigned_abs(),
            (time % SECOND).unsigned_abs(),
        );
        // As in babeltrace2, the first negative time is shown in seconds, and later ones as the
        // times of day of their absolute values.
        let negative = time < 0;
        let first_negative = negative && !self.options.seconds && !self.negative_shown;
        self.negative_shown |= first_negative;
        let mut prefix = self.open();
        if self.options.seconds || first_negative {
            let sign = if negative { "-" } else { "" };
            prefix.extend(format!("{sign}{seconds}.").bytes());
        } else {
            prefix.extend(self.date_and_time(seconds).bytes());
        }
        self.prefix.set(&prefix);
        let middle = Short::new(self.middle_zero.bytes()).filter(|_| self.options.delta);
        self.short = Short::new(&prefix).zip(middle);
        // Negative times never match the cache.
        self.base = if negative {
            i64::MIN
        } else {
            time - nanoseconds as i64
        };
        nanoseconds
    }

    fn date_and_time(&self, seconds: u64) -> String {
        let instant = jiff::Timestamp::from_second(i64::try_from(seconds).unwrap_or(i64::MAX));
        let civil = self.options.zone.to_datetime(instant.unwrap_or_default());
        let time = format!(
            "{:02}:{:02}:{:02}.",
            civil.hour(),
            civil.minute(),
            civil.second()
        );
        if self.options.date {
            format!(
                "{:04}-{:02}-{:02} {time}",
                civil.year(),
                civil.month(),
                civil.day()
            )
        } else {
            time
        }
    }
}

/// Formats the times of JSON lines: nanoseconds since the origin, and the date in UTC.
#[derive(Debug)]
pub(crate) struct JsonStamp {
    /// `,"date":"2026-11-21T01:43:15.` for the second that begins at `base`.
    prefix: Buffer,
    base: i64,
}

impl JsonStamp {
    pub(crate) fn new() -> Self {
        JsonStamp {
            prefix: Buffer::new(64),
            base: i64::MIN,
        }
    }

    /// Puts the beginning of a line's object.
    pub(crate) fn put(&mut self, buffer: &mut Buffer, time: Option<i64>) {
        let Some(time) = time else {
            return buffer.put(b"{\"timestamp\":null");
        };
        let mut nanoseconds = time.wrapping_sub(self.base) as u64;
        if nanoseconds >= SECOND as u64 {
            self.base = time - time.rem_euclid(SECOND);
            nanoseconds = time.rem_euclid(SECOND) as u64;
            let second = jiff::Timestamp::from_second(time.div_euclid(SECOND)).unwrap_or_default();
            let civil = TimeZone::UTC.to_datetime(second);
            self.prefix.clear();
            self.prefix.put(format!(",\"date\":\"{civil}.").as_bytes());
        }
        buffer.put(b"{\"timestamp\":");
        buffer.put_i64(time);
        buffer.put(self.prefix.bytes());
        buffer.put_nine(nanoseconds as u32);
        buffer.put(b"Z\"");
    }
}

#[cold]
fn put_long_delta(buffer: &mut Buffer, delta: u64) {
    if delta == NONE {
        return buffer.put(b"?.?????????");
    }
    buffer.put_u64(delta / SECOND as u64);
    buffer.put_byte(b'.');
    buffer.put_nine((delta % SECOND as u64) as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(options: StampOptions, times: &[i64]) -> Vec<String> {
        let mut stamp = Stamp::new(options);
        let show = |&time: &i64| {
            let mut buffer = Buffer::new(0);
            stamp.put(&mut buffer, time, time as u64);
            buffer.put(stamp.end());
            String::from_utf8(buffer.bytes().to_vec()).unwrap()
        };
        times.iter().map(show).collect()
    }

    fn options() -> StampOptions {
        StampOptions {
            cycles: false,
            seconds: false,
            date: false,
            delta: true,
            names: false,
            zone: TimeZone::UTC,
            palette: Palette::NONE,
        }
    }

    const TIMES: [i64; 4] = [
        1_795_225_208_513_816_224,
        1_795_225_208_521_461_071,
        1_795_225_210_000_000_000,
        5,
    ];

    #[test]
    fn times_and_differences() {
        assert_eq!(
            lines(options(), &TIMES),
            [
                "[01:40:08.513816224] (+?.?????????) ",
                "[01:40:08.521461071] (+0.007644847) ",
                "[01:40:10.000000000] (+1.478538929) ",
                "[00:00:00.000000005] (+16651518863.709551621) ",
            ]
        );
        let named = StampOptions {
            names: true,
            date: true,
            ..options()
        };
        assert_eq!(
            lines(named, &TIMES)[1],
            "timestamp = 2026-11-21 01:40:08.521461071, delta = +0.007644847"
        );
        let zone = TimeZone::fixed(jiff::tz::offset(-5));
        let far = StampOptions {
            zone,
            date: true,
            delta: false,
            ..options()
        };
        assert_eq!(lines(far, &TIMES)[0], "[2026-11-20 20:40:08.513816224] ");
    }

    #[test]
    fn cycles_and_seconds() {
        let cycles = StampOptions {
            cycles: true,
            ..options()
        };
        assert_eq!(
            lines(cycles, &[7, 19]),
            [
                "[00000000000000000007] (+????????????) ",
                "[00000000000000000019] (+000000000012) "
            ]
        );
        let seconds = StampOptions {
            seconds: true,
            delta: false,
            ..options()
        };
        assert_eq!(
            lines(seconds, &[-1_500_000_000, 2]),
            ["[-1.500000000] ", "[0.000000002] "]
        );
        assert_eq!(
            lines(options(), &[-1_500_000_000, -1])[..],
            [
                "[-1.500000000] (+?.?????????) ",
                "[00:00:00.000000001] (+1.499999999) "
            ]
        );
    }
}
