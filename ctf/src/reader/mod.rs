//! Reads event records sequentially, from a single stream or from all streams merged by time.

mod merged_reader;
mod stream_reader;

pub use crate::bits::MOST_RECORD_BYTES;
pub use merged_reader::MergedReader;
pub(crate) use stream_reader::{MOST_HEAD, out_of_range, went_back, written_content};
pub use stream_reader::{StreamReader, describe};
