//! Streamed responses, which need little memory.

use std::io::{self, BufWriter, Write};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of a piece.
const PIECE: usize = 64 << 10;
/// Number of pieces in the queue. If it is full, the writer blocks until the client reads.
const PIECES: usize = 4;

/// A body that `write` produces in a thread of its own. If `write` fails, the response is
/// truncated, which the client notices. `length`: number of bytes, if known.
pub(crate) fn streamed(
    length: Option<u64>,
    write: impl FnOnce(&mut BufWriter<Pieces>) -> Result<(), String> + Send + 'static,
) -> Body {
    let (sender, receiver) = channel(PIECES);
    tokio::task::spawn_blocking(move || {
        let mut out = BufWriter::with_capacity(PIECE, Pieces(sender.clone()));
        let done = write(&mut out).and_then(|()| out.flush().map_err(|error| error.to_string()));
        if let Err(why) = done {
            let _ = sender.blocking_send(Err(io::Error::other(why)));
        }
    });
    Body::new(Written { receiver, length })
}

/// Sends written bytes as pieces.
pub(crate) struct Pieces(Sender<io::Result<Bytes>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        // The client has disconnected.
        sent.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A body that arrives in pieces.
struct Written {
    receiver: Receiver<io::Result<Bytes>>,
    length: Option<u64>,
}

impl http_body::Body for Written {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let piece = self.receiver.poll_recv(context);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
