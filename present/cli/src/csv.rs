//! Comma-separated values (RFC 4180).

/// CSV text that grows row by row.
#[derive(Debug)]
pub(crate) struct Rows {
    text: String,
}

impl Rows {
    /// Starts with a row of column names.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let mut rows = Rows {
            text: String::new(),
        };
        rows.add(columns);
        rows
    }

    pub(crate) fn add<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        put(&mut self.text, cells);
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// Whether a cell must be in quotes.
pub(crate) fn must_quote(cell: &str) -> bool {
    cell.contains([',', '"', '\n', '\r'])
}

/// Appends a row to `text`.
pub(crate) fn put<T: AsRef<str>>(text: &mut String, cells: impl IntoIterator<Item = T>) {
    for (index, cell) in cells.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        let cell = cell.as_ref();
        if must_quote(cell) {
            text.push('"');
            text.push_str(&cell.replace('"', "\"\""));
            text.push('"');
        } else {
            text.push_str(cell);
        }
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    #[test]
    fn cells_are_quoted_when_they_must_be() {
        let mut rows = super::Rows::new(&["a", "b"]);
        rows.add(["x,y", "say \"no\""]);
        assert_eq!(rows.finish(), "a,b\n\"x,y\",\"say \"\"no\"\"\"\n");
    }
}
