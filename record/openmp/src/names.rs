//! Names of tasks and spans: the function that contains the construct, and the kind of construct.
//!
//! Each name is made once and never freed. A thread keeps those that it used last, so that the table
//! of all, which has a lock, is seldom read.

#![allow(unsafe_code)]

use core::cell::Cell;
use core::ffi::CStr;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use crate::symbols;

/// A construct of the program.
pub(crate) struct Named {
    codeptr: u64,
    kind: &'static str,
    /// The function that contains it.
    pub(crate) function: &'static CStr,
    /// The function and the kind.
    pub(crate) name: &'static CStr,
}

static NAMES: Mutex<Vec<&'static Named>> = Mutex::new(Vec::new());

const KEPT: usize = 32;

/// Names that a thread used last.
pub(crate) struct NameCache([Cell<Option<&'static Named>>; KEPT]);

impl NameCache {
    pub(crate) const fn new() -> NameCache {
        NameCache([const { Cell::new(None) }; KEPT])
    }

    /// The name of a construct. Functions that the compiler has made of a construct have no name of
    /// their own in some versions of clang: then it is that of `around`.
    pub(crate) fn of(&self, codeptr: u64, kind: &'static str, around: &Label) -> &'static Named {
        let at = (codeptr >> 2) as usize ^ (kind.len() * 5);
        let kept = &self.0[at % KEPT];
        match kept.get() {
            Some(named) if named.is(codeptr, kind) => named,
            _ => {
                let named = find(codeptr, kind, around.text());
                kept.set(Some(named));
                named
            }
        }
    }
}

impl Named {
    fn is(&self, codeptr: u64, kind: &str) -> bool {
        self.codeptr == codeptr && self.kind == kind
    }
}

#[cold]
fn find(codeptr: u64, kind: &'static str, around: Option<&'static CStr>) -> &'static Named {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(named) = names.iter().find(|named| named.is(codeptr, kind)) {
        return named;
    }
    let function = symbols::function(codeptr).map(leaked);
    let function = function.or(around).unwrap_or(c"openmp");
    let named: &'static Named = Box::leak(Box::new(Named {
        codeptr,
        kind,
        function,
        name: leaked(format!("{} {kind}", function.to_string_lossy())),
    }));
    names.push(named);
    named
}

fn leaked(text: String) -> &'static CStr {
    match CString::new(text) {
        Ok(text) => Box::leak(text.into_boxed_c_str()),
        Err(_) => c"?",
    }
}

/// A function's name in a node, or none.
#[derive(Default)]
pub(crate) struct Label(AtomicPtr<core::ffi::c_char>);

impl Label {
    pub(crate) const fn new() -> Label {
        Label(AtomicPtr::new(null_mut()))
    }

    pub(crate) fn clear(&self) {
        self.0.store(null_mut(), Ordering::Relaxed);
    }

    pub(crate) fn set(&self, text: &'static CStr) {
        self.0.store(text.as_ptr().cast_mut(), Ordering::Relaxed);
    }

    pub(crate) fn text(&self) -> Option<&'static CStr> {
        let text = self.0.load(Ordering::Relaxed);
        // SAFETY: null, or from a static text.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
    }
}
