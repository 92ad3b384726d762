//! Event classes of samples.

use std::sync::Arc;

use tracebraid_ctf::schema::build::{Align, Fields, int_class};
use tracebraid_ctf::schema::{ByteOrder, DisplayBase, FieldClass, FieldLocation, IntClass, Scope};
use tracebraid_ctf::write::fields::Fields as Values;

use super::attr::{Attr, sample_type as bit};
use super::sample::Sample;
use crate::bytes::number;
use crate::tracepoint::Format;

/// The event class of an event's samples: perf's own fields, with the names of perf's conversion to
/// CTF, then those of the tracepoint.
pub(crate) struct SampleClass<'a> {
    pub(crate) attr: &'a Attr,
    pub(crate) format: Option<&'a Format>,
}

impl SampleClass<'_> {
    /// Name of the event class.
    pub(crate) fn name(&self) -> String {
        let named = self
            .format
            .map(|format| &format.name)
            .or(self.attr.name.as_ref());
        match named {
            Some(name) => name.chars().filter(|c| !c.is_control()).collect(),
            None => format!("perf:event_{}_{:#x}", self.attr.kind, self.attr.config),
        }
    }

    /// Adds the fields to those of the event class.
    pub(crate) fn fields(&self, mut fields: Fields) -> Fields {
        let has = |bits| self.attr.has(bits);
        let mut count = 0;
        for (bits, name, length, is_hex) in OWN {
            if !has(bits) {
                continue;
            }
            fields = match (is_hex, name) {
                (true, _) => fields.hex(name, length),
                (_, "perf_tid" | "perf_pid") => fields.int(name, length),
                _ => fields.uint(name, length),
            };
            count += 1;
        }
        if has(bit::CALLCHAIN) {
            fields = fields
                .uint("perf_callchain_size", 32)
                .member("perf_callchain", callchain(count));
        }
        match self.format {
            Some(format) => format.add_to(fields),
            None if has(bit::RAW) => fields.sequence("perf_raw", 32, |element| element.hex("", 8)),
            None => fields,
        }
    }

    /// True if the tracepoint's fields lie within the sample.
    pub(crate) fn fits(&self, sample: &Sample<'_>, big: bool) -> bool {
        self.format
            .is_none_or(|format| format.fits(sample.raw, big))
    }

    /// Passes the values of a sample that [fits](SampleClass::fits).
    pub(crate) fn give(&self, sample: &Sample<'_>, big: bool, to: &mut Values<'_>) {
        let has = |bits| self.attr.has(bits);
        for (bits, name, ..) in OWN {
            if !has(bits) {
                continue;
            }
            match name {
                "perf_ip" => to.uint(sample.ip),
                "perf_tid" => to.int(sample.tid.into()),
                "perf_pid" => to.int(sample.pid.into()),
                "perf_addr" => to.uint(sample.addr),
                "perf_id" => to.uint(sample.id),
                "perf_stream_id" => to.uint(sample.stream_id),
                _ => to.uint(sample.period),
            };
        }
        if has(bit::CALLCHAIN) {
            to.uint(sample.callchain.len() as u64 / 8);
            for address in sample.callchain.chunks_exact(8) {
                to.uint(number(address, big));
            }
        }
        match self.format {
            Some(format) => format.give(sample.raw, big, to),
            None if has(bit::RAW) => {
                to.uint(sample.raw.len() as u64).bytes(sample.raw);
            }
            None => {}
        }
    }
}

/// Fields of a sample: `sample_type` bits, name, size in bits, whether displayed in hexadecimal.
const OWN: [(u64, &str, u32, bool); 7] = [
    (bit::IP, "perf_ip", 64, true),
    (bit::TID, "perf_tid", 32, false),
    (bit::TID, "perf_pid", 32, false),
    (bit::ADDR, "perf_addr", 64, true),
    (bit::ID | bit::IDENTIFIER, "perf_id", 64, false),
    (bit::STREAM_ID, "perf_stream_id", 64, false),
    (bit::PERIOD, "perf_period", 64, false),
];

/// A sequence of addresses; `length` is the index of the member that contains their number.
fn callchain(length: u32) -> FieldClass {
    let address = IntClass {
        base: DisplayBase::Hexadecimal,
        ..int_class(64, ByteOrder::Little, Align::Bytes)
    };
    let location = FieldLocation {
        scope: Scope::Payload,
        paths: vec![vec![length]],
    };
    FieldClass::Sequence {
        element: Arc::new(FieldClass::Int(Arc::new(address))),
        length: Arc::new(location),
        min_align: 1,
    }
}
