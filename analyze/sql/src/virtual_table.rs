//! Virtual tables of SQLite: the only module of this crate with `unsafe`.
//!
//! # Safety argument
//! SQLite refers to a table and to a cursor by pointers to C structures, which it casts to our
//! types and back. rusqlite therefore requires that each of our types has the layout of C and
//! begins with SQLite's structure (`repr(C)`, `base` first); `unsafe` promises no more than this.
//! This module uses neither `base` nor any pointer: rusqlite allocates both structures, fills
//! `base`, and frees them. A cursor owns all that it reads from (an [`Arc`] of the table, and rows
//! that own the rest), so it does not matter whether SQLite closes a cursor before it drops the
//! table. A connection is used by one thread at a time ([`rusqlite::Connection`] is not `Sync`),
//! and SQLite does not call a cursor during a call of that cursor. A `RefCell` checks this and
//! returns an error if it does not hold.

#![allow(unsafe_code)]

use std::borrow::Cow;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;

use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConnection, VTabCursor,
    sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error};

use crate::asked::{Bound, Plan};
use crate::table::{Rows, Table, declaration};

/// Makes a table available under its name to queries on a connection.
///
/// # Errors
/// Those of SQLite.
pub(crate) fn register(connection: &Connection, table: Arc<dyn Table>) -> rusqlite::Result<()> {
    const MODULE: &Module<'static, Connected> = &Module::eponymous_only_module();
    connection.create_module(table.name(), MODULE, Some(table))
}

#[repr(C)]
struct Connected {
    /// SQLite's structure; must be first.
    base: sqlite3_vtab,
    table: Arc<dyn Table>,
}

#[repr(C)]
struct Cursor {
    /// SQLite's structure; must be first.
    base: sqlite3_vtab_cursor,
    table: Arc<dyn Table>,
    /// `None` before the first search and after the last row.
    rows: RefCell<Option<Box<dyn Rows>>>,
    row: i64,
}

// SAFETY: `repr(C)` with SQLite's structure first; see the module.
unsafe impl VTab<'_> for Connected {
    type Aux = Arc<dyn Table>;
    type Cursor = Cursor;

    fn connect(
        _: &mut VTabConnection,
        table: Option<&Arc<dyn Table>>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> rusqlite::Result<(Cow<'static, CStr>, Connected)> {
        let table = table
            .ok_or_else(|| error("the virtual table was registered without rows"))?
            .clone();
        let declaration = CString::new(declaration(&*table))?;
        let connected = Connected {
            base: sqlite3_vtab::default(),
            table,
        };
        Ok((Cow::Owned(declaration), connected))
    }

    fn best_index(&self, info: &mut IndexInfo) -> rusqlite::Result<bool> {
        let key = self.table.key() as c_int;
        let mut plan = Plan {
            columns: info.col_used(),
            bounds: Vec::new(),
        };
        for (constraint, mut usage) in info.constraints_and_usages() {
            let bound = bound(constraint.operator());
            if let (true, true, Some(bound)) =
                (constraint.column() == key, constraint.is_usable(), bound)
            {
                plan.bounds.push(bound);
                // SQLite checks the condition again, since `omit` is not set.
                usage.set_argv_index(plan.bounds.len() as c_int);
            }
        }
        let rows = rows_expected(self.table.size(), &plan.bounds);
        info.set_estimated_rows(rows as i64);
        info.set_estimated_cost(self.table.start() + rows);
        let mut order = info.order_bys();
        let wanted = order
            .next()
            .is_some_and(|first| first.column() == key && !first.is_order_by_desc());
        let is_sorted = wanted && order.next().is_none() && self.table.is_sorted();
        info.set_order_by_consumed(is_sorted);
        info.set_idx_str(&plan.to_string());
        Ok(true)
    }

    fn open(&mut self) -> rusqlite::Result<Cursor> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            table: self.table.clone(),
            rows: RefCell::default(),
            row: 0,
        })
    }
}

// SAFETY: `repr(C)` with SQLite's structure first; see the module.
unsafe impl VTabCursor for Cursor {
    fn filter(
        &mut self,
        _: c_int,
        plan: Option<&str>,
        values: &Filters<'_>,
    ) -> rusqlite::Result<()> {
        let asked = Plan::parse(plan.unwrap_or_default()).asked(values.iter());
        self.row = 0;
        *self.rows.get_mut() = None;
        if !asked.is_empty() {
            let rows = self.table.rows(&asked).map_err(|what| self.error(&what))?;
            *self.rows.get_mut() = Some(rows);
            self.next()?;
        }
        Ok(())
    }

    fn next(&mut self) -> rusqlite::Result<()> {
        let Some(rows) = self.rows.get_mut() else {
            return Ok(());
        };
        match rows.next() {
            Ok(true) => self.row += 1,
            Ok(false) => *self.rows.get_mut() = None,
            Err(what) => {
                *self.rows.get_mut() = None;
                return Err(self.error(&what));
            }
        }
        Ok(())
    }

    fn eof(&self) -> bool {
        self.rows.try_borrow().is_ok_and(|rows| rows.is_none())
    }

    fn column(&self, context: &mut Context, column: c_int) -> rusqlite::Result<()> {
        let mut rows = self
            .rows
            .try_borrow_mut()
            .map_err(|_| self.error("a value was requested during another request"))?;
        let (Some(rows), Ok(column)) = (rows.as_mut(), usize::try_from(column)) else {
            return Ok(());
        };
        let value = rows.value(column).map_err(|what| self.error(&what))?;
        context.set_result(value)
    }

    fn rowid(&self) -> rusqlite::Result<i64> {
        Ok(self.row)
    }
}

impl Cursor {
    fn error(&self, what: &str) -> Error {
        error(&format!("{}: {what}", self.table.name()))
    }
}

fn error(what: &str) -> Error {
    Error::ModuleError(what.to_owned())
}

fn bound(operator: IndexConstraintOp) -> Option<Bound> {
    match operator {
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ => Some(Bound::Equal),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LT => Some(Bound::Less),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_LE => Some(Bound::AtMost),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GT => Some(Bound::Greater),
        IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_GE => Some(Bound::AtLeast),
        _ => None,
    }
}

/// Estimated number of rows: an equal key selects few, a bound a quarter.
fn rows_expected(all: f64, bounds: &[Bound]) -> f64 {
    let part = |bound: &Bound| match bound {
        Bound::Equal => 0.001,
        _ => 0.25,
    };
    (all * bounds.iter().map(part).product::<f64>()).max(1.0)
}
