//! TSDL, the metadata language of CTF 1.8: text to [`TraceClass`].
//!
//! Text to tokens (`lexer`), tokens to a tree (`parser`, `type_parser`, `ast`), names to types (`sema`,
//! `leaves`, `types`), the places that lengths and tags refer to (`resolve`), types to field classes
//! (`build`), and blocks to the whole (`blocks`).

mod ast;
mod blocks;
mod build;
mod leaves;
mod lexer;
mod parser;
mod resolve;
mod sema;
mod type_parser;
mod types;
mod values;

use crate::error::MetadataError;
use crate::schema::TraceClass;
use lexer::{Error, Res};
use sema::Limits;

/// Levels of types that any thread's stack has room for.
const SHALLOW: u32 = 48;
/// Levels of types that are supported at all.
const DEEP: u32 = 1100;
/// Stack of the thread that deep metadata is parsed on.
const DEEP_STACK: usize = 64 << 20;
/// Fields that one scope may always have, however short its text is.
const MIN_NODES: u64 = 1 << 16;

/// Parses and validates TSDL text (taken out of its packets already).
///
/// Types may nest 1,100 levels deep. The time that this takes, and the memory, are bounded by the
/// text's length. Errors: the first thing that is wrong, with its place.
pub fn parse(text: &[u8]) -> Result<TraceClass, MetadataError> {
    if u32::try_from(text.len()).is_err() {
        return Err(MetadataError::at(
            text,
            0,
            "metadata of 4 GiB or more is not supported",
        ));
    }
    let source = String::from_utf8_lossy(text);
    let result = match run(&source, SHALLOW) {
        Err(error) if error.too_deep => run_deep(&source),
        result => result,
    };
    result.map_err(|error| MetadataError::at(source.as_bytes(), error.at as usize, error.message))
}

fn run(source: &str, depth: u32) -> Res<TraceClass> {
    let ast = parser::parse(source, depth)?;
    let text = source.len() as u64;
    blocks::evaluate(
        &ast,
        Limits {
            depth,
            nodes: MIN_NODES.max(text),
            text,
        },
    )
}

/// Runs again, on a stack that is large enough for all levels.
fn run_deep(source: &str) -> Res<TraceClass> {
    let thread = |scope_result: std::io::Result<std::thread::ScopedJoinHandle<'_, Res<TraceClass>>>| {
        scope_result.ok().and_then(|handle| handle.join().ok())
    };
    let result = std::thread::scope(|scope| {
        thread(
            std::thread::Builder::new()
                .stack_size(DEEP_STACK)
                .spawn_scoped(scope, || run(source, DEEP)),
        )
    });
    result.unwrap_or_else(|| {
        Err(Box::new(Error {
            at: 0,
            message: "no thread could be started to parse this deeply nested metadata".to_owned(),
            too_deep: true,
        }))
    })
}
