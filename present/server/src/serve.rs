//! The HTTP server.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tracebraid_executions::database::Database;

use crate::connections::{self, Limits};
use crate::export::{Export, ExportError, Watch, exported};
use crate::hosts::{Hosts, reached_at};
use crate::pack::Pack;
use crate::page::PAGE;
use crate::path::path;
use crate::sources::Shown;
use crate::stream::streamed;

/// State of the server.
#[derive(Debug)]
pub(crate) struct Served {
    /// The database, for short requests; long ones have a connection of their own.
    database: Mutex<Database>,
    file: PathBuf,
    /// Token that every request must contain; `None` if access is open.
    token: Option<String>,
    hosts: Hosts,
    /// Packs by index of the kind; they are made one at a time.
    packs: Arc<tokio::sync::Mutex<HashMap<usize, Arc<Pack>>>>,
    /// Serializes exports.
    export: Arc<tokio::sync::Mutex<()>>,
    options: Options,
}

/// Options of the server.
#[derive(Clone, Default)]
pub struct Options {
    /// Token that every request must contain; `None` if access is open.
    pub token: Option<String>,
    /// Host names that the server accepts, in addition to addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Number of executions whose paths are in exported pages.
    pub paths: usize,
    /// Directory for temporary files, about as large as the database.
    pub directory: PathBuf,
    /// Receives the progress of reading the executions, which the first request for a kind does.
    pub watch: Option<Arc<Watch>>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the token: it is a secret.
        formatter
            .debug_struct("Options")
            .field("hosts", &self.hosts)
            .field("paths", &self.paths)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

/// A response, or an error with its status.
type Answer = Result<Response, (StatusCode, String)>;

/// Serves until `stop` returns true. The server listens at the first available address of `listen`;
/// `ready` receives the addresses at which a browser reaches it.
///
/// # Errors
/// If none of the addresses is available.
pub fn serve(
    database: Database,
    options: Options,
    listen: &[SocketAddr],
    ready: impl FnOnce(&[SocketAddr]),
    stop: impl Fn() -> bool + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let done = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        ready(&reached_at(address));
        let served = Served {
            file: database.path().to_owned(),
            database: Mutex::new(database),
            hosts: Hosts::new(address.ip(), options.token.is_some(), &options.hosts),
            token: options.token.clone(),
            packs: Arc::default(),
            export: Arc::default(),
            options,
        };
        let stopped = async move {
            while !stop() {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        };
        // Does not wait for requests in progress: their clients may never finish.
        tokio::select! {
            never = connections::serve(listener, router(Arc::new(served)), Limits::default()) => match never {},
            () = stopped => Ok(()),
        }
    });
    runtime.shutdown_background();
    done
}

fn router(served: Arc<Served>) -> Router {
    let api = Router::new()
        .route("/api/pack", get(get_pack))
        .route("/api/path", get(get_path))
        .route("/api/export", get(get_export))
        .layer(middleware::from_fn_with_state(served.clone(), with_token));
    Router::new()
        .route("/", get(get_page))
        .merge(api)
        .layer(middleware::from_fn_with_state(
            served.clone(),
            of_known_hosts,
        ))
        .layer(middleware::from_fn(with_headers))
        .with_state(served)
}

/// Refuses requests with an unknown host: a foreign page could give its own name this machine's
/// address (DNS rebinding).
async fn of_known_hosts(
    State(served): State<Arc<Served>>,
    request: Request,
    next: Next,
) -> Response {
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    match served.hosts.answer(host) {
        true => next.run(request).await,
        false => refusal(
            StatusCode::FORBIDDEN,
            &format!(
                "host {host:?} is not allowed: use an address that `tracebraid view` printed, or start it with --host NAME"
            ),
        ),
    }
}

/// Refuses requests without the token.
async fn with_token(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let told = request
        .headers()
        .get(header::AUTHORIZATION)
        .and_then(|told| told.to_str().ok());
    let told = told.and_then(|told| told.strip_prefix("Bearer "));
    match served
        .token
        .as_deref()
        .is_none_or(|token| told.is_some_and(|told| is_same(told, token)))
    {
        true => next.run(request).await,
        false => refusal(
            StatusCode::UNAUTHORIZED,
            "the token is wrong or missing: use the address that `tracebraid view` printed",
        ),
    }
}

/// Compares in a time that does not depend on the number of matching characters.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one
        .bytes()
        .zip(other.bytes())
        .fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

/// Adds the headers of all responses.
async fn with_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn refusal(status: StatusCode, why: &str) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        json!({"error": why}).to_string(),
    )
        .into_response()
}

fn answered(answer: Answer) -> Response {
    answer.unwrap_or_else(|(status, why)| refusal(status, &why))
}

async fn get_page() -> Response {
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], PAGE).into_response()
}

/// Runs long work outside the threads that answer requests.
async fn beside(work: impl FnOnce() -> Answer + Send + 'static) -> Response {
    let done = tokio::task::spawn_blocking(work).await;
    answered(done.unwrap_or_else(|_| {
        Err((
            StatusCode::INTERNAL_SERVER_ERROR,
            "the server failed".to_owned(),
        ))
    }))
}

fn number(query: &HashMap<String, String>, name: &str) -> Result<usize, (StatusCode, String)> {
    let number = query.get(name).and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        (
            StatusCode::BAD_REQUEST,
            format!("the parameter {name} must be a number: ?{name}=0"),
        )
    })
}

/// Index of the requested kind; 0 without a parameter.
fn kind(query: &HashMap<String, String>) -> Result<usize, (StatusCode, String)> {
    match query.contains_key("kind") {
        true => number(query, "kind"),
        false => Ok(0),
    }
}

type Asked = Query<HashMap<String, String>>;

async fn get_pack(State(served): State<Arc<Served>>, Query(query): Asked) -> Response {
    let answer = async {
        let pack = served.pack(kind(&query)?).await?;
        let length = pack.length(Shown::Whole).map_err(failed)?;
        let headers = [(header::CONTENT_TYPE, "application/octet-stream")];
        let body = streamed(Some(length), move |out| {
            pack.write(Shown::Whole, out)
                .map_err(|error| error.to_string())
        });
        Ok((headers, body).into_response())
    };
    answered(answer.await)
}

async fn get_path(State(served): State<Arc<Served>>, Query(query): Asked) -> Response {
    beside(move || {
        let id = number(&query, "execution")?;
        let missing = |why: String| (StatusCode::NOT_FOUND, why);
        let id = u32::try_from(id).map_err(|_| missing(format!("there is no execution {id}")))?;
        let database = served
            .database
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let path = path(&database, id, Shown::Whole).map_err(missing)?;
        Ok((
            [(header::CONTENT_TYPE, "application/json")],
            path.to_string(),
        )
            .into_response())
    })
    .await
}

async fn get_export(State(served): State<Arc<Served>>, Query(query): Asked) -> Response {
    let answer = async {
        let place = kind(&query)?;
        let turn = served.export.clone().lock_owned().await;
        let pack = served.pack(place).await?;
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (
                header::CONTENT_DISPOSITION,
                "attachment; filename=\"executions.html\"",
            ),
        ];
        let body = streamed(None, move |out| {
            let _turn = turn;
            let database = Database::open(&served.file).map_err(|error| error.to_string())?;
            let kind = database.kinds.get(place).ok_or("there is no such kind")?;
            let wanted = Export {
                database: &database,
                kind,
                paths: served.options.paths,
                directory: &served.options.directory,
                watch: &|_, _| {},
            };
            exported(&wanted, &pack, out).map_err(|error| match error {
                ExportError::Refused(why) => why,
                ExportError::Output(error) => error.to_string(),
            })
        });
        Ok((headers, body).into_response())
    };
    answered(answer.await)
}

fn failed(why: String) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, why)
}

impl Served {
    /// The pack of the kind at an index.
    async fn pack(self: &Arc<Served>, place: usize) -> Result<Arc<Pack>, (StatusCode, String)> {
        let served = self.clone();
        // A pack in progress delays other requests for packs, even if its own client has
        // disconnected.
        let mut packs = self.packs.clone().lock_owned().await;
        let made = tokio::task::spawn_blocking(move || {
            if let Some(known) = packs.get(&place) {
                return Ok(known.clone());
            }
            let database =
                Database::open(&served.file).map_err(|error| failed(error.to_string()))?;
            let kind = database.kinds.get(place);
            let kind = kind.ok_or((StatusCode::NOT_FOUND, "there is no such kind".to_owned()))?;
            let watch = served.options.watch.as_deref().unwrap_or(&|_, _| {});
            let pack = Pack::new(&database, kind, &served.options.directory, watch);
            let pack = pack.map_err(failed)?;
            let pack = Arc::new(pack);
            packs.insert(place, pack.clone());
            Ok(pack)
        });
        made.await
            .unwrap_or_else(|_| Err(failed("the server failed".to_owned())))
    }
}
