//! Histograms of the sizes of pages that were taken and given back.

use crate::groups::{self, Groups, OfThreads};
use crate::memory::GROUPINGS;
use crate::memory::lists::Row;
use crate::memory::moves::{Moves, size};
use tracebraid_follow::{By, Head, People, Thread, Views};
use tracebraid_statistics::Powers;
use tracebraid_tables::{Column, DISTRIBUTION, Forms, Group, Section, Unit, Value, View};

/// Moves of the threads that are shown.
pub(super) struct Sizes<'a> {
    pub(super) head: &'a Head,
    pub(super) people: &'a People,
    pub(super) rows: &'a [Row<'a>],
    /// Pages that are given back are recorded by batches alone.
    pub(super) only_batches: bool,
}

/// Names of the columns in counts of orders.
const EVENTS: [&str; 2] = ["allocated", "freed"];

/// A histogram: its name, and the first order with the numbers of pages from that order on.
type Orders = (String, u8, Vec<u64>);

impl Sizes<'_> {
    /// The table of the requested histograms.
    pub(super) fn section(&self, views: &Views) -> Section {
        let by = views.groupings(GROUPINGS);
        let groups = by.into_iter().flat_map(|by| match by {
            By::Event => self.by_event(),
            by => self.by_thread(by),
        });
        let columns = vec![
            groups::OF,
            Column::new("order", "Order", Unit::Id),
            Column::new("size_bytes", "Size", Unit::Bytes),
            Column::new("count", "Count", Unit::Count),
            Column::new("cumulative_share", "Cumulative", Unit::Share).only(Forms::TEXT),
        ];
        let rows = groups.flat_map(rows).collect();
        Section::new(DISTRIBUTION, "Pages by size", columns, rows)
            .of(View::Freq)
            .limited_by_group()
    }

    /// All orders from 0 on.
    fn by_event(&self) -> Vec<Orders> {
        let mut all = Moves::default();
        for row in self.rows {
            all.add_orders(&row.moves.orders);
            all.batched += row.moves.batched;
        }
        let orders = self.orders(&all);
        let group = |(at, name): (usize, &str)| {
            let counts: Vec<u64> = orders.iter().map(|counts| counts[at]).collect();
            let last = counts.iter().rposition(|&count| count > 0);
            let upto = last.map_or(0, |last| last + 1);
            (name.to_owned(), 0, counts[..upto].to_vec())
        };
        EVENTS.into_iter().enumerate().map(group).collect()
    }

    /// By thread or by process: the orders that occurred, and those between.
    fn by_thread(&self, by: By) -> Vec<Orders> {
        let of_event = |(at, event): (usize, &str)| {
            let threads = self.rows.iter().map(|row| self.of_row(row, at));
            let of = OfThreads {
                head: self.head,
                people: self.people,
                threads: threads.collect(),
            };
            let group = |(who, sizes): (Group, Powers)| {
                let bins: Vec<_> = sizes.bins().collect();
                let first = bins
                    .first()
                    .map_or(0, |bin| (bin.from / size(0)).ilog2() as u8);
                let counts = bins.iter().map(|bin| bin.count).collect();
                (format!("{event} by {}", who.name), first, counts)
            };
            let groups: Groups = of.groups(by);
            groups.into_iter().map(group).collect::<Vec<Orders>>()
        };
        EVENTS.into_iter().enumerate().flat_map(of_event).collect()
    }

    fn of_row(&self, row: &Row<'_>, event: usize) -> (Thread, Powers) {
        let mut sizes = Powers::default();
        for (order, counts) in (0u8..).zip(self.orders(row.moves)) {
            sizes.add_many(size(order), counts[event]);
        }
        let thread = row.thread.as_deref().cloned().unwrap_or_default();
        (thread, sizes)
    }

    /// By order: numbers of pages that were taken and given back.
    fn orders(&self, moves: &Moves) -> Vec<[u64; 2]> {
        let mut all = Moves::default();
        all.add_orders(&moves.orders);
        if self.only_batches && moves.batched > 0 {
            all.add_orders(&[[0, moves.batched]]);
        }
        all.orders
    }
}

fn rows((name, first, counts): Orders) -> Vec<Vec<Value>> {
    let all: u64 = counts.iter().sum();
    let mut passed = 0;
    let row = |(order, count): (u8, u64)| {
        passed += count;
        vec![
            Value::text(name.clone()),
            u64::from(order).into(),
            size(order).into(),
            count.into(),
            Value::Part(passed, all),
        ]
    };
    (first..).zip(counts).map(row).collect()
}
