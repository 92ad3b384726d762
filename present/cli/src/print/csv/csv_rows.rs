//! Rows of event records: time, host, trace, CPU, name and fields.

use tracebraid_ctf::bits::DecodeError;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::TraceSet;

use super::csv_cells::{CellWriter, Cells};
use super::csv_columns::{MOST_COLUMNS, TooManyColumns};
use super::csv_plan::{Plan, RowOptions};
use crate::print::buffer::{Buffer, PADDING};

/// The separators of consecutive empty cells, padded for copies of a constant size.
static COMMAS: [u8; MOST_COLUMNS + 1 + PADDING] = [b','; MOST_COLUMNS + 1 + PADDING];

/// The current packet of a stream.
#[derive(Debug)]
struct StreamPacket {
    packet: u64,
    /// Index of the trace.
    trace: usize,
    cpu: Option<u64>,
    /// Cells of the packet's context.
    context: Cells,
}

/// Formats event records as rows of CSV.
#[derive(Debug)]
pub(crate) struct CsvRows<'t> {
    set: &'t TraceSet,
    plan: Plan,
    /// Indexed by the reader's rank.
    lanes: Vec<StreamPacket>,
    /// Scratch space for the cells of an event record.
    cells: Cells,
}

impl<'t> CsvRows<'t> {
    /// # Errors
    /// When the fields of the selected event classes need too many columns.
    pub(crate) fn new(set: &'t TraceSet, options: &RowOptions<'_>) -> Result<Self, TooManyColumns> {
        Ok(CsvRows {
            set,
            plan: Plan::new(set, options)?,
            lanes: Vec::new(),
            cells: Cells::new(),
        })
    }

    /// Puts the names of the columns.
    pub(crate) fn put_header(&self, buffer: &mut Buffer) {
        buffer.put(self.plan.header.as_bytes());
    }

    /// Puts the row of the reader's next event record, if its class was selected.
    ///
    /// # Errors
    /// When the event record cannot be decoded; the buffer is then left as it was.
    pub(crate) fn put(
        &mut self,
        buffer: &mut Buffer,
        time: Timestamp,
        reader: &mut StreamReader<'_>,
    ) -> Result<(), DecodeError> {
        let rank = reader.rank();
        let lane = self.lanes.get(rank);
        if lane.is_none_or(|lane| lane.packet != reader.packets_begun()) {
            self.begin_packet(rank, reader);
        }
        let stream_class = reader.stream().class;
        let (Some(lane), Some(mut event)) = (self.lanes.get(rank), reader.event()) else {
            return Ok(());
        };
        let classes = self.plan.rows.get(lane.trace);
        let classes = classes.and_then(|streams| streams.get(stream_class));
        let row = classes.and_then(|classes| classes.get(event.class_index)?.as_ref());
        let (Some(row), Some(style)) = (row, self.plan.styles.get(lane.trace)) else {
            return Ok(());
        };
        self.cells.begin_with(&lane.context);
        event.walk_body(&mut CellWriter::new(&mut self.cells, style), |_, _| ())?;

        if event.stream.clock.is_some() {
            buffer.put_i64(time.0);
        }
        buffer.put_literal(&row.head);
        if self.plan.has_cpu {
            let class = (stream_class, event.class_index);
            let of_event = || style.cpus.of_event(class, event.body, event.slots);
            if let Some(cpu) = lane.cpu.or_else(of_event) {
                buffer.put_u64(cpu);
            }
        }
        buffer.put_literal(&row.name);
        for &(separators, cell) in &row.cells {
            buffer.put_padded(&COMMAS, 0, separators);
            self.cells.put(cell, buffer);
        }
        buffer.put_padded(&COMMAS, 0, row.rest);
        buffer.put_byte(b'\n');
        Ok(())
    }

    /// Decodes the context of the reader's current packet.
    fn begin_packet(&mut self, rank: usize, reader: &mut StreamReader<'_>) {
        let trace = reader.trace();
        let mut traces = self.set.traces.iter();
        let trace = traces.position(|one| std::ptr::eq(one, trace));
        let trace = trace.unwrap_or(usize::MAX);
        self.lanes
            .resize_with(self.lanes.len().max(rank + 1), || StreamPacket {
                packet: 0,
                trace,
                cpu: None,
                context: Cells::new(),
            });
        let (Some(lane), Some(style)) = (self.lanes.get_mut(rank), self.plan.styles.get(trace))
        else {
            return;
        };
        lane.packet = reader.packets_begun();
        lane.trace = trace;
        let class = reader.stream().class;
        lane.cpu = style.cpus.of_packet(class, reader.packet_head());
        lane.context.clear();
        // A packet whose context cannot be decoded has no event records.
        let _ = reader.walk_packet_context(&mut CellWriter::new(&mut lane.context, style));
    }
}
