//! The metadata stream's container: plain text, or text in packets of either byte order.

use anyhow::{Context, Result, bail};
use tracebraid_ctf::schema::{ByteOrder, TraceClass, Uuid};

/// Magic number of a metadata packet.
const MAGIC: u32 = 0x75d1_1d57;
/// Bytes of a metadata packet's header.
const HEADER_BYTES: usize = 37;

/// The text of a `metadata` file, extracted from its packets if it has any.
///
/// # Errors
/// If a packet's header is truncated or its sizes are inconsistent.
pub fn text(file: &[u8]) -> Result<Vec<u8>> {
    let order = match file
        .get(..4)
        .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
    {
        Some(bytes) if u32::from_le_bytes(bytes) == MAGIC => ByteOrder::Little,
        Some(bytes) if u32::from_be_bytes(bytes) == MAGIC => ByteOrder::Big,
        _ => return Ok(file.to_vec()),
    };
    let mut text = Vec::with_capacity(file.len());
    let mut rest = file;
    while !rest.is_empty() {
        let (content, total) = packet_sizes(rest, order)
            .with_context(|| format!("metadata packet {} bytes before the end", rest.len()))?;
        text.extend_from_slice(rest.get(HEADER_BYTES..content).unwrap_or(&[]));
        rest = rest.get(total..).unwrap_or(&[]);
    }
    Ok(text)
}

/// Content and total size of the packet at the start of `data`, in bytes.
fn packet_sizes(data: &[u8], order: ByteOrder) -> Result<(usize, usize)> {
    let number = |offset: usize| -> Result<u32> {
        let bytes: [u8; 4] = data
            .get(offset..offset + 4)
            .and_then(|bytes| bytes.try_into().ok())
            .context("cut header")?;
        Ok(match order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        })
    };
    if number(0)? != MAGIC {
        bail!("wrong magic number");
    }
    let content = (number(24)? / 8) as usize;
    let total = (number(28)? / 8) as usize;
    if content < HEADER_BYTES || total < content || total > data.len() {
        bail!(
            "content of {content} bytes in a packet of {total}, {} available",
            data.len()
        );
    }
    Ok((content, total))
}

/// Divides metadata text into packets of at most `packet_bytes` bytes (at least 64), each with
/// padding.
pub fn packetize(
    text: &[u8],
    uuid: Option<Uuid>,
    order: ByteOrder,
    packet_bytes: usize,
) -> Vec<u8> {
    let packet_bytes = packet_bytes.max(64);
    let mut file = Vec::new();
    for chunk in text.chunks(packet_bytes - HEADER_BYTES) {
        let number = |value: u32| match order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        };
        let start = file.len();
        file.extend(number(MAGIC));
        file.extend(uuid.unwrap_or([0; 16]));
        file.extend(number(0));
        file.extend(number(((HEADER_BYTES + chunk.len()) * 8) as u32));
        file.extend(number((packet_bytes * 8) as u32));
        file.extend([0, 0, 0, 1, 8]);
        file.extend(chunk);
        file.resize(start + packet_bytes, 0);
    }
    file
}

/// Parses a `metadata` file of either format.
///
/// # Errors
/// If the container or the text is invalid.
pub fn parse(file: &[u8]) -> Result<TraceClass> {
    let text = text(file)?;
    // A JSON text sequence starts with a record separator, which some writers omit.
    let is_json = matches!(text.first(), Some(0x1e | b'{'));
    let class = if is_json {
        tracebraid_ctf::ctf2::parse(&text)
    } else {
        tracebraid_ctf::tsdl::parse(&text)
    };
    Ok(class?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_hold_the_text() {
        let plain: Vec<u8> = (0..1000u32).map(|byte| b' ' + (byte % 90) as u8).collect();
        assert_eq!(text(&plain).unwrap(), plain);
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for size in [64, 100, 4096] {
                let file = packetize(&plain, Some([7; 16]), order, size);
                assert!(file.len().is_multiple_of(size));
                assert_eq!(text(&file).unwrap(), plain);
                assert!(text(&file[..file.len() - 1]).is_err());
            }
        }
    }
}
