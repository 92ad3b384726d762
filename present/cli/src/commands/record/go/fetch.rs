//! A minimal HTTP/1.1 client: one request, and an answer of unknown length.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use super::endpoint::Endpoint;

/// Limit for the head of an answer, in bytes.
const MOST_HEAD: u64 = 64 << 10;
/// Part of an error's text that is shown, in bytes.
const MOST_TEXT: u64 = 300;

/// An answer whose body follows.
pub(super) struct Answer {
    reader: BufReader<TcpStream>,
    length: Length,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Chunked,
    Bytes(u64),
    UntilClosed,
}

/// Sends a request for a trace; an error is the reason why the server sends none.
pub(super) fn request(mut connection: TcpStream, endpoint: &Endpoint) -> Result<Answer, String> {
    let sent = connection.write_all(endpoint.request().as_bytes());
    sent.map_err(|error| format!("the request cannot be sent: {error}"))?;
    let mut reader = BufReader::new(connection);
    let (status, length) = head(&mut reader)?;
    let mut answer = Answer { reader, length };
    if status == 200 {
        return Ok(answer);
    }
    let mut text = Vec::new();
    // Errors end with the connection, so a failure leaves a shorter text.
    let _ = answer.copy_to(&mut text);
    text.truncate(MOST_TEXT as usize);
    let text = String::from_utf8_lossy(&text);
    Err(refusal(status, text.trim()))
}

fn refusal(status: u16, text: &str) -> String {
    let remedy = match (status, text) {
        (404, _) => {
            ": import net/http/pprof in the program, or give the full URL of its trace handler"
        }
        (_, text) if text.contains("WriteTimeout") => {
            ": add ?seconds=N to the URL, below the server's WriteTimeout, or serve pprof from a \
             server without one"
        }
        (_, text) if text.contains("already enabled") => {
            ": another client or the program itself records a trace"
        }
        _ => "",
    };
    format!("the server answers {status} ({text}){remedy}")
}

/// Reads the head of an answer: its status, and the length of the body.
fn head(reader: &mut impl BufRead) -> Result<(u16, Length), String> {
    let mut reader = reader.take(MOST_HEAD);
    let mut line = || {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(_) if line.ends_with('\n') => Ok(line.trim_end().to_owned()),
            Ok(_) => Err("the connection ends within the head of the answer".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    };
    let first = line()?;
    let status = first.strip_prefix("HTTP/1.").and_then(|rest| {
        let status = rest.split(' ').nth(1)?;
        status.parse().ok()
    });
    let status = status.ok_or_else(|| format!("this is no answer of HTTP/1.1: {first}"))?;
    let mut length = Length::UntilClosed;
    loop {
        let header = line()?;
        if header.is_empty() {
            return Ok((status, length));
        }
        let (name, value) = header.split_once(':').unwrap_or((&header, ""));
        match name.to_ascii_lowercase().as_str() {
            "transfer-encoding" if value.trim().eq_ignore_ascii_case("chunked") => {
                length = Length::Chunked;
            }
            "content-length" if length != Length::Chunked => {
                let bytes = value.trim().parse();
                length = Length::Bytes(bytes.map_err(|_| format!("invalid length: {value}"))?);
            }
            _ => {}
        }
    }
}

impl Answer {
    /// Copies the body. An error is the reason why it is incomplete; the received part is copied.
    pub(super) fn copy_to(&mut self, to: &mut impl Write) -> Result<(), String> {
        let cut = |error: std::io::Error| format!("the trace of Go ends early: {error}");
        let ended = "the trace of Go ends early: the program closed the connection";
        match self.length {
            Length::UntilClosed => std::io::copy(&mut self.reader, to).map(drop).map_err(cut),
            Length::Bytes(bytes) => {
                let copied = std::io::copy(&mut (&mut self.reader).take(bytes), to);
                match copied.map_err(cut)? == bytes {
                    true => Ok(()),
                    false => Err(ended.to_owned()),
                }
            }
            Length::Chunked => loop {
                let mut line = String::new();
                let read = (&mut self.reader).take(MOST_HEAD).read_line(&mut line);
                read.map_err(cut)?;
                let size = line.split(';').next().unwrap_or_default().trim();
                let Ok(size) = u64::from_str_radix(size, 16) else {
                    return Err(ended.to_owned());
                };
                if size == 0 {
                    return Ok(());
                }
                let copied = std::io::copy(&mut (&mut self.reader).take(size), to);
                // A line end follows each chunk.
                let mut end = [0; 2];
                if copied.map_err(cut)? < size || self.reader.read_exact(&mut end).is_err() {
                    return Err(ended.to_owned());
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        let of = |text: &str| head(&mut text.as_bytes());
        assert_eq!(
            of("HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\nContent-Length: 3\r\n\r\n"),
            Ok((200, Length::Chunked))
        );
        assert_eq!(
            of("HTTP/1.0 404 Not Found\nContent-Length: 3\n\n"),
            Ok((404, Length::Bytes(3)))
        );
        assert_eq!(of("HTTP/1.1 500 x\r\n\r\n"), Ok((500, Length::UntilClosed)));
        assert!(of("HTTP/1.1 200 OK\r\nA: b\r\n").is_err());
        assert!(of("SSH-2.0-x\r\n\r\n").is_err());
    }
}
