//! Parses a metadata file in any container and language to a [`TraceClass`].

use crate::error::MetadataError;
use crate::packetized::{Unpacked, unpack_metadata};
use crate::schema::{ByteOrder, CtfVersion, TraceClass};
use crate::{ctf2, tsdl};

/// Parses and validates the bytes of a metadata file: plain or in packets, CTF 1.8 or CTF 2.
///
/// Packets of CTF 1.8 must have the byte order and UUID that the text declares. Line and column of
/// an error count in the text, without the headers of packets.
pub fn parse(file: &[u8]) -> Result<TraceClass, MetadataError> {
    let unpacked = unpack_metadata(file)?;
    match unpacked.version {
        CtfVersion::V2_0 => ctf2::parse(&unpacked.text),
        CtfVersion::V1_8 => {
            let class = tsdl::parse(&unpacked.text)?;
            check_packets(&unpacked, &class)?;
            Ok(class)
        }
    }
}

fn check_packets(unpacked: &Unpacked<'_>, class: &TraceClass) -> Result<(), MetadataError> {
    let Some(packets) = unpacked.packets else {
        return Ok(());
    };
    let text = &unpacked.text;
    if packets.byte_order != class.byte_order {
        return Err(MetadataError::at(
            text,
            position(text, b"byte_order"),
            format!(
                "the metadata packets are {}, but the trace's `byte_order` is {}",
                describe(packets.byte_order),
                describe(class.byte_order)
            ),
        ));
    }
    if class
        .uuid
        .is_some_and(|uuid| uuid != packets.uuid && packets.uuid != [0; 16])
    {
        return Err(MetadataError::at(
            text,
            position(text, b"uuid"),
            "the UUID of the metadata packets is not the trace's `uuid`",
        ));
    }
    Ok(())
}

fn describe(byte_order: ByteOrder) -> &'static str {
    match byte_order {
        ByteOrder::Little => "little endian",
        ByteOrder::Big => "big endian",
    }
}

/// Position of an attribute of the `trace` block, for an error about its value.
fn position(text: &[u8], attribute: &[u8]) -> usize {
    let find = |from: usize, word: &[u8]| {
        let rest = text.get(from..)?;
        rest.windows(word.len())
            .position(|window| window == word)
            .map(|at| from + at)
    };
    find(0, b"trace {")
        .and_then(|block| find(block, attribute))
        .unwrap_or(0)
}
