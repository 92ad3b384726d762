//! Columns of tables.

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in JSON and CSV.
    pub key: &'static str,
    /// Title for people.
    pub title: &'static str,
    /// Heading in text tables, where shorter than the title.
    pub heading: &'static str,
    /// Meaning and format of the values.
    pub unit: Unit,
    /// Order in which columns are hidden if a table is too wide, from 1; 0: never hidden.
    pub left_out: u8,
    /// The formats that show the column.
    pub forms: Forms,
    /// The columns of nested tables, if the values are tables.
    pub nested: &'static [Column],
    /// True if values may be unknown or not applicable ([`Value::None`](crate::Value::None)).
    pub is_optional: bool,
}

impl Column {
    /// A column that is never hidden.
    pub const fn new(key: &'static str, title: &'static str, unit: Unit) -> Column {
        Column {
            key,
            title,
            heading: title,
            unit,
            left_out: 0,
            forms: Forms::ALL,
            nested: &[],
            is_optional: false,
        }
    }

    /// A column of JSON only, which needs no title.
    pub const fn json(key: &'static str, unit: Unit) -> Column {
        Column::new(key, "", unit).only(Forms::JSON)
    }

    /// A column whose values are tables with these columns. In CSV, each row of a nested table is a
    /// row of its own.
    pub const fn of_tables(key: &'static str, nested: &'static [Column]) -> Column {
        Column {
            nested,
            ..Column::new(key, "", Unit::Table)
        }
    }

    /// A column whose values are single rows with these columns.
    pub const fn of_row(key: &'static str, nested: &'static [Column]) -> Column {
        Column {
            unit: Unit::Row,
            ..Column::of_tables(key, nested)
        }
    }

    /// Allows hiding the column, after columns with smaller numbers (from 1).
    pub const fn left_out(mut self, order: u8) -> Column {
        self.left_out = order;
        self
    }

    /// Sets the heading in text tables.
    pub const fn headed(mut self, heading: &'static str) -> Column {
        self.heading = heading;
        self
    }

    /// Allows values that are unknown or not applicable.
    pub const fn optional(mut self) -> Column {
        self.is_optional = true;
        self
    }

    /// Restricts the formats that show the column.
    pub const fn only(mut self, forms: Forms) -> Column {
        self.forms = forms;
        self
    }
}

/// A set of report formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forms(u8);

impl Forms {
    /// Tables of text.
    pub const TEXT: Forms = Forms(1);
    /// Comma-separated values.
    pub const CSV: Forms = Forms(2);
    /// JSON.
    pub const JSON: Forms = Forms(4);
    /// LAMI 1.0.
    pub const LAMI: Forms = Forms(8);
    /// Every format.
    pub const ALL: Forms = Forms(15);

    /// Union of both sets.
    pub const fn and(self, other: Forms) -> Forms {
        Forms(self.0 | other.0)
    }

    /// True if this set contains the other one.
    pub const fn contain(self, other: Forms) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Unit or kind of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of objects.
    Count,
    /// An id: a number that is never summed.
    Id,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Duration,
    /// Nanoseconds from the origin.
    Time,
    /// Part of a whole, from 0 to 1.
    Share,
    /// A floating-point number.
    Number,
    /// Text.
    Text,
    /// A thread.
    Thread,
    /// A thread, with its process id in a column of its own.
    ProcessThread,
    /// A process, named after a thread of it.
    Process,
    /// A process in the tree of parents and children.
    Tree,
    /// A priority, on the kernel's scale.
    Priority,
    /// A CPU.
    Cpu,
    /// A system call.
    Syscall,
    /// An interrupt.
    Irq,
    /// A block device.
    Disk,
    /// A network interface.
    Interface,
    /// A path.
    Path,
    /// A file descriptor.
    Descriptor,
    /// A command line to type.
    Command,
    /// Several numbers.
    List,
    /// Values with names that users chose.
    Named,
    /// A row of a nested table.
    Row,
    /// Rows of a nested table.
    Table,
}
