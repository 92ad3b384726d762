//! Times in options.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use tracebraid_tables::seconds;

use crate::output::say;

const SECOND: i64 = 1_000_000_000;
const YEAR: i64 = 365 * 86_400 * SECOND;

/// A time that has not been resolved for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeSpec {
    /// Nanoseconds since the clock's origin, and the unit in which the user wrote them.
    Absolute(i64, Unit),
    /// Nanoseconds since the beginning of the trace.
    Relative(i64),
    /// Date and time in the time zone of the output.
    Civil(DateTime),
    /// Time on the day of the trace; see [`TimeSpec::resolve`] for traces that cross midnight.
    TimeOfDay(Time),
}

/// Accepted forms, for error messages.
const FORMS: &str = "write seconds since the origin (1795225394.2, or 1795225394200000000ns), \
an offset from the beginning of the trace (+1.5s, +200ms), a date (2026-11-21T01:43:15.2) or a time of day (01:43:15.2)";

impl std::str::FromStr for TimeSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let trimmed = text.trim();
        let parsed = if let Some(relative) = trimmed.strip_prefix('+') {
            duration(relative).map(TimeSpec::Relative)
        } else if trimmed.contains(':') || trimmed.matches('-').count() >= 2 {
            calendar(trimmed)
        } else {
            quantity(trimmed).map(|(time, unit)| TimeSpec::Absolute(time, unit))
        };
        parsed.ok_or_else(|| format!("`{text}` is not a time: {FORMS}"))
    }
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    name: &'static str,
    nanoseconds: i64,
}

const SECONDS: Unit = unit("s", SECOND);
const NANOSECONDS: Unit = unit("ns", 1);
const UNITS: [Unit; 7] = [
    SECONDS,
    unit("ms", 1_000_000),
    unit("us", 1_000),
    unit("\u{b5}s", 1_000),
    NANOSECONDS,
    unit("min", 60 * SECOND),
    unit("h", 3600 * SECOND),
];

const fn unit(name: &'static str, nanoseconds: i64) -> Unit {
    Unit { name, nanoseconds }
}

impl Unit {
    /// A time in this unit, without its sign, as users write it: `1.5s`. A remainder below 10⁻⁹ of
    /// the unit is left out.
    fn text(self, time: i64) -> String {
        let (time, unit) = (i128::from(time).abs(), i128::from(self.nanoseconds));
        let fraction = format!(".{:09}", time % unit * 1_000_000_000 / unit);
        let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
        format!("{}{fraction}{}", time / unit, self.name)
    }
}

/// Parses a number with a unit, to nanoseconds. Without a unit it is in seconds, or in nanoseconds
/// if seconds would be absurd.
pub(crate) fn duration(text: &str) -> Option<i64> {
    quantity(text).map(|(nanoseconds, _)| nanoseconds)
}

/// Like [`duration`], with the unit.
fn quantity(text: &str) -> Option<(i64, Unit)> {
    let split = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        // 13 digits of seconds are more than 300 centuries.
        "" if !number.contains('.') && number.trim_start_matches('-').len() >= 13 => NANOSECONDS,
        "" => SECONDS,
        name => UNITS.into_iter().find(|unit| unit.name == name)?,
    };
    let (negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let whole: i64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut nanoseconds = whole.checked_mul(unit.nanoseconds)?;
    let mut place = unit.nanoseconds;
    for digit in fraction.bytes() {
        place /= 10;
        nanoseconds = nanoseconds.checked_add(place * i64::from(digit - b'0'))?;
    }
    Some((if negative { -nanoseconds } else { nanoseconds }, unit))
}

fn calendar(text: &str) -> Option<TimeSpec> {
    if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        return i64::try_from(instant.as_nanosecond())
            .ok()
            .map(|time| TimeSpec::Absolute(time, NANOSECONDS));
    }
    let time_of = |text: &str| -> Option<Time> {
        let text = if text.matches(':').count() == 1 {
            format!("{text}:00")
        } else {
            text.to_owned()
        };
        let padded = if text.find(':') == Some(1) {
            format!("0{text}")
        } else {
            text
        };
        padded.parse().ok()
    };
    match text.split_once(['T', ' ']) {
        Some((date, time)) => {
            let date: Date = date.parse().ok()?;
            Some(TimeSpec::Civil(date.to_datetime(time_of(time.trim())?)))
        }
        None if text.contains(':') => time_of(text).map(TimeSpec::TimeOfDay),
        None => text
            .parse::<Date>()
            .ok()
            .map(|date| TimeSpec::Civil(date.to_datetime(Time::midnight()))),
    }
}

impl TimeSpec {
    /// Resolves the time for a trace with the given extent, in nanoseconds since the origin.
    ///
    /// A time of day is on the day of the trace. In a trace of several days it is the first such
    /// time between the trace's begin and end; without such a time, that of the first or the last
    /// day, whichever is nearer to the trace.
    ///
    /// # Errors
    /// When the time is relative and the beginning of the trace is unknown, when it is out of
    /// range, and when seconds since the origin, or before it, were most likely meant as seconds
    /// since the beginning of the trace.
    pub(crate) fn resolve(
        self,
        extent: Option<(i64, i64)>,
        zone: &TimeZone,
    ) -> Result<i64, String> {
        let known = || {
            extent
                .ok_or_else(|| "relative times and times of day need a trace with times".to_owned())
        };
        let instant = |civil: DateTime| {
            let zoned = zone.to_ambiguous_timestamp(civil).compatible().ok();
            let nanoseconds = zoned.and_then(|instant| i64::try_from(instant.as_nanosecond()).ok());
            nanoseconds.ok_or_else(|| format!("{civil} is out of range"))
        };
        self.check_origin(extent)?;
        match self {
            TimeSpec::Absolute(time, _) => Ok(time),
            TimeSpec::Relative(time) => Ok(known()?.0.saturating_add(time)),
            TimeSpec::Civil(civil) => instant(civil),
            TimeSpec::TimeOfDay(time) => {
                let (begin, end) = known()?;
                let date = |time: i64| civil(time, zone).date();
                let (first, last) = (date(begin), date(end.max(begin)));
                let of_first = instant(first.to_datetime(time))?;
                if first == last || of_first >= begin {
                    return Ok(of_first);
                }
                let of_next = first.tomorrow().map_err(|error| error.to_string())?;
                let of_next = instant(of_next.to_datetime(time))?;
                let is_near = of_next <= end || end.abs_diff(of_next) < begin.abs_diff(of_first);
                Ok(if is_near { of_next } else { of_first })
            }
        }
    }
}

impl TimeSpec {
    /// Resolves the end of a range that begins at `from`, in nanoseconds since the origin. A
    /// relative time counts from `from`, or from the beginning of the trace if `from` is 0 or less.
    ///
    /// # Errors
    /// Those of [`TimeSpec::resolve`].
    pub(crate) fn resolve_end(
        self,
        from: Option<i64>,
        extent: Option<(i64, i64)>,
        zone: &TimeZone,
    ) -> Result<i64, String> {
        match (self, from) {
            (TimeSpec::Relative(time), Some(from)) if from > 0 => Ok(from.saturating_add(time)),
            _ => self.resolve(extent, zone),
        }
    }

    /// Prints a note if this end of a range, which counts from `from`, was perhaps meant to count
    /// from the beginning of the trace: `--from +0.7s --to +0.71s`.
    pub(crate) fn tell_length(self, from: TimeSpec) {
        let (TimeSpec::Relative(from), TimeSpec::Relative(to)) = (from, self) else {
            return;
        };
        if from > 0 && to > from {
            say!(
                "note: --to +{} counts from --from, so the range is {0} long; to end {0} after the \
                 beginning of the trace, use --to +{}",
                seconds(to),
                seconds(to - from)
            );
        }
    }

    /// Refuses seconds since the origin that were most likely meant as seconds since the beginning
    /// of the trace: `1s` is in 1970, but the trace is from this year. Such a time lies outside the
    /// trace by more than its length, while the same offset from its beginning lies within, or it is
    /// in the first year of a clock that the trace begins to use much later. Times before the origin
    /// are refused unless the trace begins before it. 0 is accepted: it selects the whole trace.
    ///
    /// # Errors
    /// The message contains the suggested time.
    fn check_origin(self, extent: Option<(i64, i64)>) -> Result<(), String> {
        let (TimeSpec::Absolute(time, unit), Some((start, last))) = (self, extent) else {
            return Ok(());
        };
        let written = unit.text(time);
        if time < 0 && start >= 0 {
            return Err(format!(
                "-{written} is before the clock's origin; did you mean +{written} (from the beginning of the trace)? Times \
                 cannot count from the end of the trace"
            ));
        }
        if time <= 0 || time >= start {
            return Ok(());
        }
        let is_far = start.saturating_sub(time) > last.saturating_sub(start);
        let is_within = start.checked_add(time).is_some_and(|time| time <= last);
        let is_absurd = time < YEAR && start > 10 * YEAR;
        if !(is_far && (is_within || is_absurd)) {
            return Ok(());
        }
        Err(format!(
            "{written} counts from the clock's origin, {} before the trace begins; did you mean +{written} (from the \
             beginning of the trace)? Dates and times of day also work",
            crate::units::duration(start.abs_diff(time))
        ))
    }
}

fn civil(time: i64, zone: &TimeZone) -> DateTime {
    let instant = jiff::Timestamp::from_nanosecond(time.into()).unwrap_or_default();
    zone.to_datetime(instant)
}

/// A time of day.
pub(crate) fn clock(time: i64, zone: &TimeZone) -> String {
    format!("{:.9}", civil(time, zone).time())
}

/// A date and a time; in nanoseconds if the time is beyond the calendar.
pub(crate) fn date(time: i64, zone: &TimeZone) -> String {
    match jiff::Timestamp::from_nanosecond(time.into()) {
        Ok(instant) => {
            let civil = zone.to_datetime(instant);
            format!("{} {:.9}", civil.date(), civil.time())
        }
        Err(_) => format!("{time} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: i64 = 1_795_225_394_135_134_325;

    fn resolve(text: &str) -> Result<i64, String> {
        text.parse::<TimeSpec>()?
            .resolve(Some((START, START + SECOND)), &TimeZone::UTC)
    }

    #[test]
    fn all_forms() {
        assert_eq!(resolve("1795225394.5"), Ok(1_795_225_394_500_000_000));
        let before: TimeSpec = "-1".parse().unwrap();
        assert_eq!(before.resolve(None, &TimeZone::UTC), Ok(-SECOND));
        assert_eq!(resolve("1795225394135134325"), Ok(START));
        assert_eq!(resolve("1795225394135134325ns"), Ok(START));
        assert_eq!(resolve("1795225394.135134325"), Ok(START));
        assert_eq!(resolve("+1.5s"), Ok(START + 1_500_000_000));
        assert_eq!(resolve("+2"), Ok(START + 2_000_000_000));
        assert_eq!(resolve("+1.5ms"), Ok(START + 1_500_000));
        assert_eq!(resolve("2026-11-21T01:43:14.135134325"), Ok(START));
        assert_eq!(resolve("2026-11-21 01:43:14.135134325"), Ok(START));
        assert_eq!(resolve("2026-11-21T01:43:14.135134325Z"), Ok(START));
        assert_eq!(resolve("2026-11-21T02:43:14.135134325+01:00"), Ok(START));
        assert_eq!(resolve("01:43:14.135134325"), Ok(START));
        assert_eq!(resolve("1:43"), Ok(START - 14_135_134_325));
        assert_eq!(
            resolve("2026-11-21"),
            Ok(START - (103 * 60 + 14) * SECOND - 135_134_325)
        );
    }

    #[test]
    fn relative_ends_count_from_the_beginning_of_the_range() {
        let extent = Some((START, START + SECOND));
        let end = |text: &str, from| {
            let spec: TimeSpec = text.parse().unwrap();
            spec.resolve_end(from, extent, &TimeZone::UTC)
        };
        let from = START + SECOND / 2;
        assert_eq!(end("+100ms", Some(from)), Ok(from + SECOND / 10));
        assert_eq!(end("+100ms", None), Ok(START + SECOND / 10));
        assert_eq!(end("+100ms", Some(0)), Ok(START + SECOND / 10));
        assert_eq!(end("01:43:15", Some(from)), resolve("01:43:15"));
    }

    /// Only if the time is absurd since the origin and makes sense since the beginning.
    #[test]
    fn seconds_that_were_meant_from_the_beginning_are_refused() {
        let check = |text: &str, start: i64, last: i64| {
            text.parse::<TimeSpec>()
                .unwrap()
                .check_origin(Some((start, last)))
        };
        let last = START + 2 * SECOND;
        for (text, instead) in [
            ("1s", "+1s"),
            ("1.5", "+1.5s"),
            ("200ms", "+200ms"),
            ("0.50s", "+0.5s"),
            ("1500us", "+1500us"),
            ("1", "+1s"),
            ("-1.5ms", "+1.5ms"),
            ("-2026", "+2026s"),
            // Later than the end of the trace, but absurd as a date.
            ("3s", "+3s"),
        ] {
            let message = check(text, START, last).unwrap_err();
            assert!(
                message.contains(&format!("did you mean {instead} (from the")),
                "{text}: {message}"
            );
        }
        for text in [
            "0",
            "+1s",
            "1795225394.2",
            "1795225393",
            "01:43:15",
            "2026-11-21",
        ] {
            assert_eq!(check(text, START, last), Ok(()), "{text}");
        }
        // Clocks that begin at 0, or shortly before the trace.
        assert_eq!(check("1s", 0, last), Ok(()));
        assert_eq!(check("1s", -SECOND, 3 * SECOND), Ok(()));
        assert_eq!(check("-1s", -SECOND, 3 * SECOND), Ok(()));
        assert_eq!(check("50", 100 * SECOND, 200 * SECOND), Ok(()));
        assert!(check("5", 100 * SECOND, 110 * SECOND).is_err());
        assert_eq!("1s".parse::<TimeSpec>().unwrap().check_origin(None), Ok(()));
    }

    #[test]
    fn zones_count_for_dates() {
        let zone = TimeZone::fixed(jiff::tz::offset(-5));
        let spec: TimeSpec = "2026-11-20T20:43:14.135134325".parse().unwrap();
        assert_eq!(spec.resolve(None, &zone), Ok(START));
        let spec: TimeSpec = "20:43:14.135134325".parse().unwrap();
        assert_eq!(
            spec.resolve(Some((START, START + SECOND)), &zone),
            Ok(START)
        );
        assert!(spec.resolve(None, &zone).is_err());
    }

    /// From 23:59:50 to 00:00:10, and other ends.
    #[test]
    fn times_of_day_are_of_the_trace_where_it_goes_over_midnight() {
        let midnight: TimeSpec = "2026-11-22".parse().unwrap();
        let midnight = midnight.resolve(None, &TimeZone::UTC).unwrap();
        let begin = midnight - 10 * SECOND;
        let of = |text: &str, seconds: i64| {
            let spec: TimeSpec = text.parse().unwrap();
            let time = spec.resolve(Some((begin, begin + seconds * SECOND)), &TimeZone::UTC);
            (time.unwrap() - midnight) / SECOND
        };
        let day = 24 * 3600;
        assert_eq!(of("00:00:00", 20), 0);
        assert_eq!(of("00:00:01", 20), 1);
        assert_eq!(of("23:59:55", 20), -5);
        // Times before the trace and after it.
        assert_eq!(of("23:59:00", 20), -60);
        assert_eq!(of("00:00:30", 20), 30);
        // The trace ends before midnight: all times are on one day.
        assert_eq!(of("00:00:00", 5), -day);
        assert_eq!(of("23:59:59", 5), -1);
        // In a trace of several days, each time occurs.
        assert_eq!(of("12:00", 3 * day), day / 2);
        assert_eq!(of("23:59:40", 3 * day), day - 20);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "+",
            "abc",
            "1.2.3",
            "12:99",
            "5 parsecs",
            "2026-13-01",
            "99999999999s",
            "--3",
            "1e5",
        ] {
            assert!(resolve(text).is_err(), "{text}");
        }
    }
}
