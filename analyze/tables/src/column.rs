//! Columns of tables.

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// For programs.
    pub key: &'static str,
    /// For people.
    pub title: &'static str,
    /// The heading in tables of text, where that is shorter than the title.
    pub heading: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// Order in which columns are left out where a table is too wide; 0 for those that stay.
    pub left_out: u8,
    /// The formats that show it.
    pub forms: Forms,
    /// The columns of the tables that are its values.
    pub nested: &'static [Column],
}

impl Column {
    /// A column that stays.
    pub const fn new(key: &'static str, title: &'static str, unit: Unit) -> Column {
        Column {
            key,
            title,
            heading: title,
            unit,
            left_out: 0,
            forms: Forms::ALL,
            nested: &[],
        }
    }

    /// A column of JSON only, where its key says what it is.
    pub const fn json(key: &'static str, unit: Unit) -> Column {
        Column::new(key, "", unit).only(Forms::JSON)
    }

    /// A column whose values are tables with these columns. As comma-separated values each row
    /// of such a table is a row of its own.
    pub const fn of_tables(key: &'static str, nested: &'static [Column]) -> Column {
        Column {
            nested,
            ..Column::new(key, "", Unit::Table)
        }
    }

    /// Says that it may be left out, after those with smaller numbers (from 1).
    pub const fn left_out(mut self, order: u8) -> Column {
        self.left_out = order;
        self
    }

    /// Gives the heading in tables of text.
    pub const fn headed(mut self, heading: &'static str) -> Column {
        self.heading = heading;
        self
    }

    /// Says which formats show it.
    pub const fn only(mut self, forms: Forms) -> Column {
        self.forms = forms;
        self
    }
}

/// Formats of reports, as a set.
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
    /// All of them.
    pub const ALL: Forms = Forms(15);

    /// Those of both sets.
    pub const fn and(self, other: Forms) -> Forms {
        Forms(self.0 | other.0)
    }

    /// True if it has all formats of the other set.
    pub const fn contain(self, other: Forms) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// An id: a number that is not added up.
    Id,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Duration,
    /// Nanoseconds from the origin.
    Time,
    /// A part of a whole, from 0 to 1.
    Share,
    /// A number with a fraction.
    Number,
    /// Text.
    Text,
    /// A thread.
    Thread,
    /// A thread, with the id of its process in a column of its own.
    ProcessThread,
    /// A process: the thread after which it is named.
    Process,
    /// A process in the tree of those that made each other.
    Tree,
    /// A priority as the kernel counts.
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
    /// A descriptor.
    Descriptor,
    /// What to type.
    Command,
    /// A row of another table, or several.
    Table,
}
