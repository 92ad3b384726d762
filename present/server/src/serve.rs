//! The HTTP server.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use tracebraid_executions::database::{Database, Kind, Table};

use crate::export::{Export, export};
use crate::pack::pack;
use crate::page::PAGE;
use crate::path::path;

/// What is served.
#[derive(Debug)]
pub struct Served {
    /// The database; who asks first waits for what others asked.
    database: Mutex<Database>,
    /// What every request has to tell, unless nobody needs to.
    token: Option<String>,
    /// Whether only this machine is to be answered: pages of other origins could not be told apart by the token alone.
    is_local: bool,
    /// Packs that were made, by place of the kind.
    packs: Mutex<HashMap<usize, Bytes>>,
    /// Of how many executions exported pages tell the path.
    paths: usize,
}

impl Served {
    /// A database, served to who has the token.
    pub fn new(database: Database, token: Option<String>, paths: usize) -> Served {
        Served {
            database: Mutex::new(database),
            token,
            is_local: true,
            packs: Mutex::default(),
            paths,
        }
    }
}

/// A refusal with its status.
type Answer = Result<Response, (StatusCode, String)>;

/// Serves until `stop` is ready; `ready` is told the address.
///
/// # Errors
/// When it cannot listen there.
pub fn serve(
    served: Served,
    listen: SocketAddr,
    ready: impl FnOnce(SocketAddr),
    stop: impl Fn() -> bool + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        ready(address);
        let served = Served {
            is_local: address.ip().is_loopback(),
            ..served
        };
        let stopped = async move {
            while !stop() {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        };
        // Requests that are going on when it is to stop are not waited for: they may be of clients that never end.
        tokio::select! {
            done = axum::serve(listener, router(Arc::new(served))).into_future() => done,
            () = stopped => Ok(()),
        }
    })
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
        .layer(middleware::from_fn_with_state(served.clone(), of_this_machine))
        .layer(middleware::from_fn(with_headers))
        .with_state(served)
}

/// Refuses requests under foreign names: a page elsewhere could give its name this machine's address (DNS rebinding).
async fn of_this_machine(State(served): State<Arc<Served>>, request: Request, next: Next) -> Response {
    let host = request
        .headers()
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    match !served.is_local || matches!(name, "localhost" | "127.0.0.1" | "[::1]") {
        true => next.run(request).await,
        false => refusal(StatusCode::FORBIDDEN, "this is served to this machine only"),
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

/// Compares in a time that does not tell how much of it is right.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one
        .bytes()
        .zip(other.bytes())
        .fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && differences == 0
}

/// What all answers tell the browser.
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

/// Does what takes long beside the threads that answer.
async fn beside(work: impl FnOnce() -> Answer + Send + 'static) -> Response {
    let done = tokio::task::spawn_blocking(work).await;
    answered(
        done.unwrap_or_else(|_| Err((StatusCode::INTERNAL_SERVER_ERROR, "the server failed".to_owned()))),
    )
}

fn number(query: &HashMap<String, String>, name: &str) -> Result<usize, (StatusCode, String)> {
    let number = query.get(name).and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        (
            StatusCode::BAD_REQUEST,
            format!("a number is expected: ?{name}=0"),
        )
    })
}

type Asked = Query<HashMap<String, String>>;

async fn get_pack(State(served): State<Arc<Served>>, Query(query): Asked) -> Response {
    beside(move || {
        let place = match query.contains_key("kind") {
            true => number(&query, "kind")?,
            false => 0,
        };
        let known = served
            .packs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&place)
            .cloned();
        let bytes = match known {
            Some(bytes) => bytes,
            None => {
                let bytes = Bytes::from(
                    served.of_kind(place, |database, kind, table| Ok(pack(database, kind, table)))?,
                );
                served
                    .packs
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(place, bytes.clone());
                bytes
            }
        };
        Ok((
            [(header::CONTENT_TYPE, "application/octet-stream")],
            Body::from(bytes),
        )
            .into_response())
    })
    .await
}

async fn get_path(State(served): State<Arc<Served>>, Query(query): Asked) -> Response {
    beside(move || {
        let id = number(&query, "execution")?;
        let missing = |why: String| (StatusCode::NOT_FOUND, why);
        let id = u32::try_from(id).map_err(|_| missing(format!("there is no execution {id}")))?;
        let database = served.database.lock().unwrap_or_else(PoisonError::into_inner);
        let path = path(&database, id).map_err(missing)?;
        Ok(([(header::CONTENT_TYPE, "application/json")], path.to_string()).into_response())
    })
    .await
}

async fn get_export(State(served): State<Arc<Served>>, Query(query): Asked) -> Response {
    beside(move || {
        let place = match query.contains_key("kind") {
            true => number(&query, "kind")?,
            false => 0,
        };
        let paths = served.paths;
        let page = served.of_kind(place, |database, kind, table| {
            export(&Export {
                database,
                kind,
                table,
                paths,
            })
        })?;
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (
                header::CONTENT_DISPOSITION,
                "attachment; filename=\"executions.html\"",
            ),
        ];
        Ok((headers, page).into_response())
    })
    .await
}

impl Served {
    /// Does something with the executions of the kind at that place.
    fn of_kind<T>(
        &self,
        place: usize,
        work: impl FnOnce(&Database, &Kind, &Table) -> Result<T, String>,
    ) -> Result<T, (StatusCode, String)> {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = database
            .kinds
            .get(place)
            .ok_or((StatusCode::NOT_FOUND, "there is no such kind".to_owned()))?;
        let failed = |why: String| (StatusCode::INTERNAL_SERVER_ERROR, why);
        let table = database.table(kind).map_err(|error| failed(error.to_string()))?;
        work(&database, kind, &table).map_err(failed)
    }
}
