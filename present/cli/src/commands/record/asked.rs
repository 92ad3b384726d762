//! Requests to a background recording.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use tracebraid_session::control::{Answer, Question, Request, Server, Status};
use tracebraid_session::kernel::Progress;
use tracebraid_session::{Session, SessionError, SessionSummary};

use crate::failure::{DAMAGED, Failure};

/// Answers requests to a session.
pub(super) struct Asked<'s> {
    name: &'s str,
    server: &'s Server,
    directory: PathBuf,
}

impl<'s> Asked<'s> {
    /// `directory` is that of the session's trace.
    pub(super) fn new(name: &'s str, server: &'s Server, directory: &Path) -> Asked<'s> {
        Asked {
            name,
            server,
            directory: absolute(directory),
        }
    }

    /// Answers a pending request. A request to stop is returned: it is answered after the end of
    /// the recording.
    pub(super) fn look(&self, session: &Session, elapsed: Duration) -> Option<Question> {
        let question = self.server.question()?;
        let answer = match &question.request {
            Request::Stop => return Some(question),
            Request::Status => {
                Answer::Done(self.status(session.progress(), session.keeps_newest(), elapsed))
            }
            Request::Rotate => match session.rotate() {
                Ok(directory) => Answer::Done(Status {
                    directory: absolute(&directory),
                    ..self.status(session.progress(), false, elapsed)
                }),
                Err(error) => Answer::Failed(error.to_string()),
            },
            Request::Snapshot(_) if !session.keeps_newest() => {
                let why = "this recording writes all events and keeps none in memory: start it with --snapshot";
                Answer::Failed(why.to_owned())
            }
            Request::Snapshot(directory) => match session.snapshot(directory) {
                Ok(progress) => Answer::Done(Status {
                    directory: directory.clone(),
                    ..self.status(progress, true, elapsed)
                }),
                Err(error) => Answer::Failed(error.to_string()),
            },
        };
        question.answer(&answer);
        None
    }

    /// Answers a request to stop.
    pub(super) fn stopped(
        &self,
        question: Question,
        stopped: Result<SessionSummary, SessionError>,
        elapsed: Duration,
    ) -> Result<ExitCode, Failure> {
        let (answer, code) = match stopped {
            Ok(summary) => {
                let progress = summary
                    .kernel
                    .map(|kernel| kernel.total)
                    .unwrap_or_default();
                // Events that were kept in memory have been written by now.
                let status = self.status(progress, false, elapsed);
                (Answer::Done(status), ExitCode::SUCCESS)
            }
            Err(error) => (Answer::Failed(error.to_string()), ExitCode::from(DAMAGED)),
        };
        question.answer(&answer);
        Ok(code)
    }

    fn status(&self, progress: Progress, keeps_newest: bool, elapsed: Duration) -> Status {
        Status {
            name: self.name.to_owned(),
            pid: std::process::id(),
            directory: self.directory.clone(),
            elapsed_ns: elapsed.as_nanos() as u64,
            events: progress.events,
            lost: progress.lost,
            bytes: progress.bytes,
            keeps_newest,
            chunks: progress.chunks,
        }
    }
}

/// An absolute path, because clients may have another working directory.
fn absolute(directory: &Path) -> PathBuf {
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}
