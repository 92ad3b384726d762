//! What is neither a file nor a directory: opening a pipe waits until somebody writes to it,
//! perhaps for ever.

use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// What is there, if it is neither a file nor a directory; links are followed. Also `None` if
/// nobody can tell.
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
