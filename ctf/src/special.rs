//! Files other than regular files and directories. Opening a pipe waits for a writer, perhaps for
//! ever.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// The kind of file if the path is neither a regular file nor a directory; links are followed.
/// `None` otherwise, or if the kind cannot be determined.
pub fn special(path: &Path) -> Option<&'static str> {
    let kind = std::fs::metadata(path).ok()?.file_type();
    match () {
        () if kind.is_fifo() => Some("a pipe"),
        () if kind.is_socket() => Some("a socket"),
        () if kind.is_char_device() => Some("a character device"),
        () if kind.is_block_device() => Some("a block device"),
        () => None,
    }
}
