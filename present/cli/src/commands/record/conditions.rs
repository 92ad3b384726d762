//! `--where`: translates an expression of the filter language into conditions for BPF programs.

use std::str::FromStr;

use tracebraid_language::ast::{Expr, Field, Operator, Value, Where};
use tracebraid_language::parse::parse_with_units;
use tracebraid_session::kernel::{Bounds, Conditions, ThreadName};

use crate::time;

/// Conditions on system calls and page faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition(pub(super) Conditions);

/// Advice at the end of errors of `--where`.
const KNOWN: &str = "--where compares these fields with values: duration and ret of system calls, tid, pid, prio, and \
                     procname (== and !=, a whole name or PREFIX*), joined by &&. Select calls with --syscalls; filter by \
                     other fields when reading: tracebraid print --filter";

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Condition, String> {
        let is_quantity = |quantity: &str| time::duration(quantity).is_some();
        let expression = parse_with_units(text, &is_quantity).map_err(|error| error.to_string())?;
        let mut conditions = Conditions::default();
        add(&expression, &mut conditions).map_err(|why| format!("{why}; {KNOWN}"))?;
        if let Some(duration) = conditions.duration {
            check_duration(duration)?;
        }
        Ok(Condition(conditions))
    }
}

fn add(expression: &Expr, to: &mut Conditions) -> Result<(), String> {
    match expression {
        Expr::And(all) => all.iter().try_for_each(|expression| add(expression, to)),
        Expr::Compare(Field::Procname, operator, value) => {
            let name = thread_name(*operator, value)?;
            match to.procname.replace(name) {
                Some(_) => Err("procname can be compared only once".to_owned()),
                None => Ok(()),
            }
        }
        Expr::Compare(field, operator, value) => {
            let (place, number) = match field {
                Field::Tid => (&mut to.tid, integer(value)?),
                Field::Pid => (&mut to.pid, integer(value)?),
                Field::Path(Where::Anywhere | Where::Payload, names) => {
                    match names.join(".").as_str() {
                        "ret" => (&mut to.result, integer(value)?),
                        "prio" => (&mut to.prio, integer(value)?),
                        "duration" => (&mut to.duration, nanoseconds(value)?),
                        name => return Err(format!("`{name}` cannot be compared here")),
                    }
                }
                Field::Path(Where::Context, names) => match names.join(".").as_str() {
                    "tid" => (&mut to.tid, integer(value)?),
                    "pid" => (&mut to.pid, integer(value)?),
                    "prio" => (&mut to.prio, integer(value)?),
                    name => return Err(format!("`ctx.{name}` cannot be compared here")),
                },
                _ => return Err("a field cannot be compared here".to_owned()),
            };
            let bounds = bounds(*operator, number)?;
            *place = Some(match *place {
                None => bounds,
                Some(before) => both(before, bounds)?,
            });
            Ok(())
        }
        Expr::Or(_) => Err("`||` is not supported here".to_owned()),
        Expr::Not(_) => Err("`!` is not supported here: use the opposite comparison".to_owned()),
        Expr::Event(_) => Err("names of events are not supported here".to_owned()),
        Expr::Has(_) => Err("a value must be compared".to_owned()),
    }
}

fn integer(value: &Value) -> Result<i64, String> {
    match value {
        Value::Integer(number) => i64::try_from(*number).ok(),
        _ => None,
    }
    .ok_or_else(|| format!("`{}` is not a whole number", value.text()))
}

/// A time with a unit: a number alone would be ambiguous.
fn nanoseconds(value: &Value) -> Result<i64, String> {
    let text = value.text();
    let has_unit = text.ends_with(|last: char| last.is_alphabetic());
    time::duration(&text)
        .filter(|_| has_unit)
        .ok_or_else(|| format!("`{text}` is not a duration with a unit, such as 500us, 1ms or 2s"))
}

fn bounds(operator: Operator, number: i64) -> Result<Bounds, String> {
    let (least, most) = match operator {
        Operator::Equal | Operator::NotEqual => (number, number),
        Operator::Less => (i64::MIN, number.saturating_sub(1)),
        Operator::LessOrEqual => (i64::MIN, number),
        Operator::Greater => (number.saturating_add(1), i64::MAX),
        Operator::GreaterOrEqual => (number, i64::MAX),
        Operator::Matches | Operator::MatchesNot => {
            return Err("numbers cannot be compared with patterns".to_owned());
        }
    };
    Ok(Bounds {
        least,
        most,
        is_inverted: operator == Operator::NotEqual,
    })
}

fn both(one: Bounds, other: Bounds) -> Result<Bounds, String> {
    if one.is_inverted || other.is_inverted {
        return Err("`!=` must be the only comparison of its field".to_owned());
    }
    Ok(Bounds {
        least: one.least.max(other.least),
        most: one.most.min(other.most),
        is_inverted: false,
    })
}

/// Maximum size of a thread's name in the kernel, in bytes.
const MOST_NAME: usize = 15;

fn thread_name(operator: Operator, value: &Value) -> Result<ThreadName, String> {
    let is_inverted = match operator {
        Operator::Equal | Operator::Matches => false,
        Operator::NotEqual | Operator::MatchesNot => true,
        _ => return Err("procname can only be compared with == and !=".to_owned()),
    };
    let text = value.text();
    let (text, is_prefix) = match text.strip_suffix('*') {
        Some(prefix) => (prefix.to_owned(), true),
        None => (text, false),
    };
    if text.contains(['*', '?', '[']) {
        return Err(format!("`{text}`: the only possible pattern is PREFIX*"));
    }
    if text.len() > MOST_NAME {
        return Err(format!(
            "`{text}` is too long: the kernel keeps only the first {MOST_NAME} bytes of names"
        ));
    }
    Ok(ThreadName {
        text,
        is_prefix,
        is_inverted,
    })
}

fn check_duration(duration: Bounds) -> Result<(), String> {
    if duration.is_inverted {
        return Err("duration cannot be compared with `!=`: use < or >".to_owned());
    }
    let finite = if duration.most == i64::MAX {
        duration.least
    } else {
        duration.most
    };
    match finite > Conditions::LONGEST_NS {
        true => Err(format!(
            "durations can be compared with at most {} s: the recorder keeps all events of that time in memory",
            Conditions::LONGEST_NS / 1_000_000_000
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Conditions {
        text.parse::<Condition>().unwrap().0
    }

    fn between(least: i64, most: i64) -> Option<Bounds> {
        Some(Bounds {
            least,
            most,
            is_inverted: false,
        })
    }

    #[test]
    fn comparisons_become_bounds() {
        assert_eq!(of("duration > 1ms").duration, between(1_000_001, i64::MAX));
        assert_eq!(
            of("duration >= 1.5 ms").duration,
            between(1_500_000, i64::MAX)
        );
        assert_eq!(of("ret < 0").result, between(i64::MIN, -1));
        assert_eq!(of("tid == 5 && prio < 100").tid, between(5, 5));
        assert_eq!(of("tid == 5 && ctx.prio < 100").prio, between(i64::MIN, 99));
        assert_eq!(of("pid >= 5 && pid <= 9").pid, between(5, 9));
        assert!(of("ret != 0").result.unwrap().is_inverted);
    }

    #[test]
    fn names_may_be_prefixes() {
        let name = |text: &str| of(text).procname.unwrap();
        let nginx = name("procname == \"nginx\"");
        assert_eq!(
            (&*nginx.text, nginx.is_prefix, nginx.is_inverted),
            ("nginx", false, false)
        );
        assert!(name("procname == \"nginx*\"").is_prefix);
        assert!(name("procname =~ \"kworker*\"").is_prefix);
        assert!(name("procname != sh").is_inverted);
    }

    #[test]
    fn what_bpf_cannot_do_is_refused_with_what_it_can() {
        for (text, part) in [
            ("ret < 0 || tid == 1", "`||`"),
            ("!(tid == 1)", "`!`"),
            ("filename == \"x\"", "`filename`"),
            ("sched_switch", "names of events"),
            ("procname == \"a*b\"", "PREFIX*"),
            ("duration > 5", "duration with a unit"),
            ("cpu == 1", "cannot be compared"),
        ] {
            let why = text.parse::<Condition>().unwrap_err();
            assert!(
                why.contains(part) && why.contains("duration and ret"),
                "{text}: {why}"
            );
        }
        let long = "duration > 1min".parse::<Condition>().unwrap_err();
        assert!(long.contains("10 s"), "{long}");
        assert!("duration >".parse::<Condition>().is_err());
    }
}
