//! Different queries yield consistent results.

use std::collections::BTreeMap;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_history::{Attribute, AttributeKind, History, Since, ThreadState, Value};

use crate::history;
use crate::model::{Model, entries};
use tracebraid_models::traces::kernel_trace;

/// The attributes with a value in the middle of a trace.
fn attributes(history: &History) -> Vec<Attribute> {
    let meta = history.meta();
    let found = history
        .at(meta.begin + (meta.end - meta.begin) / 2, |_| true)
        .unwrap();
    found.into_iter().map(|(attribute, _)| attribute).collect()
}

#[test]
fn changes_are_those_of_the_plain_state_machine() {
    let set = kernel_trace("kernel-mix-small").unwrap();
    let (_place, history) = history(&set);
    let (begin, end) = (history.meta().begin, history.meta().end);
    let (from, to) = (begin + (end - begin) / 5, begin + (end - begin) / 2);
    let attributes = attributes(&history);
    let mut model = Model::default();
    let mut expected = vec![Vec::new(); attributes.len()];
    let paths: Vec<String> = attributes
        .iter()
        .map(|attribute| attribute.path().to_string())
        .collect();
    let mut entries = entries(&set).into_iter().peekable();
    while let Some(entry) = entries.next_if(|entry| entry.time < to) {
        let time = entry.time;
        model.step(&entry);
        let states = model.cpu_states();
        for (path, expected) in paths.iter().zip(&mut expected) {
            let value = model
                .values
                .get(path)
                .or_else(|| states.get(path))
                .cloned()
                .unwrap_or_else(|| "-".into());
            if time <= from {
                *expected = vec![(from, value)];
            } else if expected
                .last()
                .is_none_or(|last: &(i64, String)| last.1 != value)
            {
                expected.push((time, value));
            }
        }
    }
    for (attribute, expected) in attributes.iter().zip(expected) {
        let found = history.changes(*attribute, from, to).unwrap();
        let found: Vec<(i64, String)> = found
            .into_iter()
            .map(|since| (since.time, since.value.to_string()))
            .collect();
        assert_eq!(found, expected, "{}", attribute.path());
    }
}

#[test]
fn changes_are_found_from_any_time_both_ways() {
    let set = kernel_trace("kernel-mix-small").unwrap();
    let (_place, history) = history(&set);
    let (begin, end) = (history.meta().begin, history.meta().end);
    for attribute in attributes(&history).into_iter().step_by(7) {
        let all = history.changes(attribute, begin - 1, end + 1).unwrap();
        for pair in all.windows(2) {
            let [before, after] = pair else {
                unreachable!()
            };
            let between = before.time + (after.time - before.time) / 2;
            assert_eq!(
                history
                    .next_change(attribute, before.time)
                    .unwrap()
                    .as_ref(),
                Some(after)
            );
            assert_eq!(history.value(attribute, between).unwrap(), before.value);
            let previous = history.previous_change(attribute, after.time).unwrap();
            assert_eq!(
                previous.as_ref(),
                Some(before).filter(|before| before.time >= begin)
            );
            let is_it = |value: &Value| *value == after.value;
            let expected = if is_it(&before.value) {
                before.time
            } else {
                after.time
            };
            assert_eq!(
                history
                    .first(attribute, (before.time, end + 1), is_it)
                    .unwrap(),
                Some(expected)
            );
        }
        let last = all.last().unwrap();
        assert_eq!(
            history
                .next_change(attribute, last.time.max(begin))
                .unwrap(),
            None
        );
    }
}

#[test]
fn screens_show_values_of_shortly_before() {
    let set = kernel_trace("kernel-ust-requests").unwrap();
    let (_place, history) = history(&set);
    let (begin, end) = (history.meta().begin, history.meta().end);
    let attributes = attributes(&history);
    assert!(history.blocks().1 > 0, "there are coarse blocks");
    let mut coarse = 0;
    for (from, to) in [(begin, end), (begin + 1_000_000_007, begin + 1_100_000_000)] {
        for samples in [1, 50, 2000] {
            let rows = history.sampled(&attributes, (from, to), samples).unwrap();
            let step = (to - from) / samples as i64;
            for (attribute, row) in attributes.iter().zip(&rows) {
                assert_eq!(row.len(), samples);
                let changes = history.changes(*attribute, begin - 1, end).unwrap();
                for (sample, value) in row.iter().enumerate() {
                    let time =
                        from + ((to - from) as i128 * sample as i128 / samples as i128) as i64;
                    let exact = value_at(&changes, time);
                    // One of the values within the preceding step.
                    let first = changes
                        .partition_point(|since| since.time <= time - step)
                        .max(1)
                        - 1;
                    let near = changes[first..]
                        .iter()
                        .take_while(|since| since.time <= time);
                    assert!(
                        near.clone().any(|since| since.value == *value),
                        "{} at {time}",
                        attribute.path()
                    );
                    coarse += usize::from(exact != *value);
                }
            }
        }
    }
    assert!(coarse > 0, "no coarse level was used");
}

fn value_at(changes: &[Since], time: i64) -> Value {
    let at = changes.partition_point(|since| since.time <= time);
    changes[..at]
        .last()
        .map_or(Value::Null, |since| since.value.clone())
}

#[test]
fn conditions_are_found_where_they_hold_first() {
    let set = kernel_trace("kernel-mix-small").unwrap();
    let (_place, history) = history(&set);
    let (begin, end) = (history.meta().begin, history.meta().end);
    let states = attributes(&history)
        .into_iter()
        .filter(|attribute| attribute.kind() == AttributeKind::ThreadState);
    let mut found = 0;
    for attribute in states {
        let is_it = |value: &Value| *value == Value::State(ThreadState::DiskSleep);
        let first = history.first(attribute, (begin, end), is_it).unwrap();
        let changes = history.changes(attribute, begin, end).unwrap();
        assert_eq!(
            first,
            changes
                .iter()
                .find(|since| is_it(&since.value))
                .map(|since| since.time)
        );
        found += usize::from(first.is_some());
    }
    assert!(found > 2, "{found} threads slept for a disk");
}

/// Threads, interrupts and priorities are listed by value, however many there are: their average
/// would have no meaning.
#[test]
fn numbers_that_name_something_are_not_averaged() {
    let set = kernel_trace("kernel-mix-small").unwrap();
    let (_place, history) = history(&set);
    let range = (history.meta().begin, history.meta().end + 1);
    let mut most = 0;
    for attribute in attributes(&history) {
        let report = history.report(attribute, range).unwrap();
        let mut times: BTreeMap<Value, u64> = BTreeMap::new();
        let changes = history.changes(attribute, range.0, range.1).unwrap();
        let ends = changes
            .iter()
            .skip(1)
            .map(|since| since.time)
            .chain([range.1]);
        for (since, end) in changes.iter().zip(ends) {
            *times.entry(since.value.clone()).or_default() += end.abs_diff(since.time);
        }
        times.remove(&Value::Null);
        let path = attribute.path().to_string();
        let names = [
            "/thread",
            "/irq",
            "/sleep",
            "/cpu",
            "/priority",
            "/process",
            "/parent",
        ];
        if names.iter().any(|name| path.ends_with(name)) {
            assert_eq!(report.numbers, None, "{path}");
            most = most.max(times.len());
        }
        match report.numbers {
            None => {
                let totals = report
                    .values
                    .into_iter()
                    .map(|(value, times)| (value, times.total_ns));
                assert_eq!(totals.collect::<BTreeMap<_, _>>(), times, "{path}");
            }
            Some(numbers) => {
                let number = |value: &Value| match value {
                    Value::Number(number) => *number as f64,
                    _ => panic!("{path}: {value}"),
                };
                let sum: f64 = times
                    .iter()
                    .map(|(value, &time)| number(value) * time as f64)
                    .sum();
                let average = sum / times.values().sum::<u64>() as f64;
                assert!(
                    (numbers.average - average).abs() <= average.abs() * 1e-9,
                    "{path}"
                );
            }
        }
    }
    // More than the limit for numbers that measure.
    assert!(most > 16, "{most}");
}

/// Two recordings; the one that begins later ends minutes before the other.
#[test]
fn nothing_is_known_behind_the_end_of_a_machines_trace() {
    let unpacked = tracebraid_testkit::recorded::unpacked;
    let traces = [
        unpacked("kernel-mix-small"),
        unpacked("kernel-ust-requests").join("kernel-ust-requests/kernel"),
    ];
    let set = TraceSet::open(&traces).unwrap();
    let (_place, history) = history(&set);
    let meta = history.meta();
    let (early, end) = meta
        .ends
        .iter()
        .zip(0u32..)
        .filter_map(|(end, host)| Some((host, (*end)?)))
        .min_by_key(|(_, end)| *end)
        .unwrap();
    assert!(meta.end - end > 1_000_000_000, "{:?}", meta.ends);
    let is_early = |attribute: Attribute| attribute.host() == early;
    let known = history.at(end, is_early).unwrap();
    assert!(known.len() > 100);
    assert_eq!(history.at(end + 1, is_early).unwrap(), []);
    assert_ne!(history.at(meta.end, |_| true).unwrap(), []);
    let mut states = 0;
    for (attribute, value) in known {
        assert_ne!(value, Value::Null);
        assert_eq!(history.value(attribute, end).unwrap(), value);
        assert_eq!(history.value(attribute, end + 1).unwrap(), Value::Null);
        let gone = Since {
            time: end + 1,
            value: Value::Null,
        };
        let changes = history.changes(attribute, end, meta.end).unwrap();
        assert_eq!(changes.last(), Some(&gone), "{}", attribute.path());
        assert_eq!(
            history.next_change(attribute, end).unwrap(),
            Some(gone.clone())
        );
        assert_eq!(
            history.previous_change(attribute, meta.end).unwrap(),
            Some(gone)
        );
        let sampled = history
            .sampled(&[attribute], (end - 1000, meta.end), 50)
            .unwrap();
        assert_eq!(
            sampled[0].last(),
            Some(&Value::Null),
            "{}",
            attribute.path()
        );
        if attribute.kind() == AttributeKind::CpuThread {
            let report = history.report(attribute, (meta.begin, meta.end)).unwrap();
            let told: u64 = report.values.values().map(|times| times.total_ns).sum();
            assert!(told <= end.abs_diff(meta.begin) + 1, "{told}");
            states += 1;
        }
    }
    assert!(states > 0);
}
