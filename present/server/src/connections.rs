//! Connections: limits on their number, and on the time for which they may keep the server waiting.
//!
//! A client has some seconds to send a request, and to read part of an answer. The number of
//! connections never uses up the file descriptors of the process: a new connection replaces the
//! oldest connection that has sent no request. Idle connections therefore do not keep clients out.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};

/// Limits on connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum number of connections.
    pub(crate) connections: usize,
    /// Maximum time for the head of a request, from the beginning of a connection or the end of the
    /// previous answer.
    pub(crate) head: Duration,
    /// Maximum time for which the client may read none of an answer.
    pub(crate) stall: Duration,
}

/// Maximum number of connections, if there are descriptors for them.
const MOST: usize = 256;
/// Descriptors reserved for databases, temporary files and the server itself.
const LEFT: usize = 64;
/// Delay before accepting again after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(50);

impl Default for Limits {
    fn default() -> Limits {
        let descriptors = descriptors().unwrap_or(1024);
        Limits {
            connections: (descriptors.saturating_sub(LEFT) / 2).clamp(4, MOST),
            head: Duration::from_secs(10),
            stall: Duration::from_secs(60),
        }
    }
}

/// Limit on the file descriptors of this process.
fn descriptors() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))?;
    // "unlimited" is not a number.
    line.split_whitespace().nth(3)?.parse().ok()
}

/// An open connection.
struct Open {
    task: JoinHandle<()>,
    /// Set by the first request; until then the connection may be closed to make room.
    has_asked: Arc<AtomicBool>,
}

/// Accepts connections and serves them, forever.
pub(crate) async fn serve(listener: TcpListener, router: Router, limits: Limits) -> Infallible {
    let ended = Arc::new(Notify::new());
    // In the order of arrival.
    let mut open: Vec<Open> = Vec::new();
    loop {
        let accepted = listener.accept().await;
        open.retain(|one| !one.task.is_finished());
        match accepted {
            Ok((stream, _)) => {
                while open.len() >= limits.connections && !make_room(&mut open) {
                    ended.notified().await;
                    open.retain(|one| !one.task.is_finished());
                }
                open.push(begin(stream, router.clone(), limits, ended.clone()));
            }
            // The client has closed the connection already.
            Err(error) if is_of_connection(&error) => {}
            // No file descriptor or memory is available for another connection.
            Err(_) => {
                make_room(&mut open);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted
    )
}

/// Closes the oldest connection without a request. Returns false if all have sent one.
fn make_room(open: &mut Vec<Open>) -> bool {
    let silent = open
        .iter()
        .position(|one| !one.has_asked.load(Ordering::Relaxed));
    if let Some(place) = silent {
        open.remove(place).task.abort();
    }
    silent.is_some()
}

/// Serves a connection in a task of its own.
fn begin(stream: TcpStream, router: Router, limits: Limits, ended: Arc<Notify>) -> Open {
    let has_asked = Arc::new(AtomicBool::new(false));
    let asks = has_asked.clone();
    let answers = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |request| {
        asks.store(true, Ordering::Relaxed);
        answers.call(request)
    });
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head);
    let connection =
        server.serve_connection(TokioIo::new(Patient::new(stream, limits.stall)), service);
    let task = tokio::spawn(async move {
        // Errors of a connection are the client's, and cannot be reported to it.
        let _ = connection.await;
        ended.notify_one();
    });
    Open { task, has_asked }
}

/// A connection whose client must read from time to time.
struct Patient {
    stream: TcpStream,
    patience: Duration,
    /// Deadline while the client reads nothing.
    over: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    fn new(stream: TcpStream, patience: Duration) -> Patient {
        Patient {
            stream,
            patience,
            over: None,
        }
    }

    /// Starts or stops the deadline, depending on the result of a write.
    fn watched<T>(
        &mut self,
        done: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.over = None;
            return done;
        }
        let end = Instant::now() + self.patience;
        let over = self
            .over
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(end)));
        ready!(over.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, room)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watched(done, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.watched(done, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::SocketAddr;

    use axum::routing::get;

    use super::*;

    /// Serves two pages in a thread of its own, until the test ends.
    fn served(limits: Limits) -> SocketAddr {
        let (told, address) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
                told.send(listener.local_addr().expect("an address"))
                    .expect("a receiver");
                let router = Router::new()
                    .route("/", get(async || "here"))
                    .route("/large", get(async || vec![b'x'; 64 << 20]));
                serve(listener, router, limits).await
            })
        });
        address.recv().expect("it listens")
    }

    fn connect(address: SocketAddr) -> std::net::TcpStream {
        let stream = std::net::TcpStream::connect(address).expect("it listens");
        // Only failing tests wait this long.
        stream
            .set_read_timeout(Some(Duration::from_secs(100)))
            .expect("a time");
        stream
    }

    const QUESTION: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

    fn ask(stream: &mut std::net::TcpStream) -> String {
        stream.write_all(QUESTION).expect("it reads");
        let mut room = [0; 4096];
        let mut answer = String::new();
        while !answer.ends_with("here") {
            let count = stream.read(&mut room).expect("it answers");
            assert!(count > 0, "it was closed after {answer:?}");
            answer.push_str(&String::from_utf8_lossy(&room[..count]));
        }
        answer
    }

    #[test]
    fn who_says_nothing_or_half_a_request_is_not_waited_for() {
        let limits = Limits {
            connections: 100,
            head: Duration::from_millis(300),
            stall: Duration::from_secs(100),
        };
        let address = served(limits);
        for said in [&b""[..], b"GET / HTTP/1.1\r\nHo", QUESTION] {
            let mut stream = connect(address);
            stream.write_all(said).expect("it reads");
            let mut answer = Vec::new();
            // The server closes the connection, whatever was sent.
            stream.read_to_end(&mut answer).expect("it ends");
            assert_eq!(answer.ends_with(b"here"), said == QUESTION, "{answer:?}");
        }
    }

    #[test]
    fn silent_connections_make_room_for_those_that_ask() {
        let limits = Limits {
            connections: 8,
            head: Duration::from_secs(1000),
            stall: Duration::from_secs(1000),
        };
        let address = served(limits);
        let mut first = connect(address);
        ask(&mut first);
        let silent: Vec<_> = (0..100).map(|_| connect(address)).collect();
        ask(&mut connect(address));
        // A connection that has sent a request stays open.
        ask(&mut first);
        let is_closed = |mut stream: &std::net::TcpStream| {
            stream.read(&mut [0; 8]).is_ok_and(|count| count == 0)
        };
        assert!(silent.iter().take(90).all(is_closed));
    }

    #[test]
    fn who_takes_nothing_of_an_answer_is_not_waited_for() {
        let limits = Limits {
            connections: 1,
            head: Duration::from_secs(1000),
            stall: Duration::from_millis(300),
        };
        let address = served(limits);
        let mut stream = connect(address);
        let question = String::from_utf8_lossy(QUESTION).replace("GET /", "GET /large");
        stream.write_all(question.as_bytes()).expect("it reads");
        // There is room for a single connection: this request is answered after the other
        // connection is closed.
        ask(&mut connect(address));
        drop(stream);
    }
}
