//! Comma-separated values (RFC 4180).

/// Rows of a table.
#[derive(Debug)]
pub(crate) struct Rows {
    text: String,
}

impl Rows {
    /// A table with these columns.
    pub(crate) fn new(columns: &[&str]) -> Self {
        let mut rows = Rows { text: String::new() };
        rows.add(columns);
        rows
    }

    /// Adds a row.
    pub(crate) fn add<T: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = T>) {
        for (index, cell) in cells.into_iter().enumerate() {
            if index > 0 {
                self.text.push(',');
            }
            let cell = cell.as_ref();
            if cell.contains([',', '"', '\n', '\r']) {
                self.text.push('"');
                self.text.push_str(&cell.replace('"', "\"\""));
                self.text.push('"');
            } else {
                self.text.push_str(cell);
            }
        }
        self.text.push('\n');
    }

    /// All of it.
    pub(crate) fn finish(self) -> String {
        self.text
    }
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
