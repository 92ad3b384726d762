//! Decompression with zlib or zstd, with bounded output.

use flate2::{Decompress, FlushDecompress, Status};
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// Window size of a zstd stream, as a power of two: 8 MiB, the default limit of all writers of the
/// format.
const WINDOW_LOG: u32 = 23;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    None,
    Zlib,
    Zstd,
}

impl Algorithm {
    /// The algorithm for trace-cmd's name of it.
    pub(crate) fn by_name(name: &str) -> Option<Algorithm> {
        match name {
            "none" => Some(Algorithm::None),
            "zlib" => Some(Algorithm::Zlib),
            "zstd" => Some(Algorithm::Zstd),
            _ => None,
        }
    }

    /// Decompresses `bytes` to exactly `size` bytes.
    ///
    /// # Errors
    /// A description of the fault.
    pub(crate) fn all(self, bytes: &[u8], size: u64) -> Result<Vec<u8>, String> {
        let all = match self {
            Algorithm::None => bytes.to_vec(),
            Algorithm::Zlib => zlib(bytes, size)?,
            Algorithm::Zstd => zstd(bytes, size)?,
        };
        match all.len() as u64 == size {
            true => Ok(all),
            false => Err(format!(
                "it decompresses to {} bytes instead of {size}",
                all.len()
            )),
        }
    }
}

/// Number of bytes by which a buffer grows, so that no more is allocated than the output needs.
const PIECE: usize = 1 << 18;

fn zlib(bytes: &[u8], most: u64) -> Result<Vec<u8>, String> {
    let mut state = Decompress::new(true);
    let mut all = Vec::new();
    loop {
        all.reserve(PIECE);
        let before = (state.total_in(), state.total_out());
        let rest = bytes.get(before.0 as usize..).unwrap_or_default();
        let status = state.decompress_vec(rest, &mut all, FlushDecompress::Finish);
        match status.map_err(|error| error.to_string())? {
            Status::StreamEnd => return Ok(all),
            _ if (state.total_in(), state.total_out()) == before => {
                return Err("it is truncated".to_owned());
            }
            _ if all.len() as u64 > most => return Ok(all),
            _ => {}
        }
    }
}

fn zstd(bytes: &[u8], most: u64) -> Result<Vec<u8>, String> {
    let mut stream = ZstdStream::new();
    let mut all = Vec::new();
    stream.feed(bytes, |piece| {
        all.extend_from_slice(piece);
        if all.len() as u64 > most {
            Err("it decompresses to too many bytes".to_owned())
        } else {
            Ok(())
        }
    })?;
    Ok(all)
}

/// A zstd stream in pieces, each flushed by its writer.
pub(crate) struct ZstdStream {
    context: DCtx<'static>,
    out: Box<[u8]>,
}

impl ZstdStream {
    pub(crate) fn new() -> Self {
        let mut context = DCtx::create();
        // The library supports this limit, so setting it cannot fail.
        let _ = context.set_parameter(DParameter::WindowLogMax(WINDOW_LOG));
        let out = vec![0; PIECE / 2].into();
        ZstdStream { context, out }
    }

    /// Decompresses the next piece and passes the output to `take`, in pieces.
    ///
    /// # Errors
    /// If the bytes are not valid zstd, and errors of `take`.
    pub(crate) fn feed<E: From<String>>(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut input = InBuffer::around(bytes);
        loop {
            let mut output = OutBuffer::around(&mut *self.out);
            let before = input.pos();
            let result = self.context.decompress_stream(&mut output, &mut input);
            let written = output.pos();
            result.map_err(|code| E::from(zstd_safe::get_error_name(code).to_owned()))?;
            take(self.out.get(..written).unwrap_or_default())?;
            let is_full = written == self.out.len();
            if !is_full && (input.pos() == bytes.len() || input.pos() == before) {
                return Ok(());
            }
        }
    }
}
