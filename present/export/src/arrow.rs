//! Results of a history query as a file in Arrow's IPC format ("Feather, version 2"), which pandas,
//! Polars and DuckDB read.
//!
//! Columns: `time` (a timestamp in UTC; null in queries for a moment), `attribute`, `number` and
//! `text`. One of `number` and `text` is null, or both without a value. Texts are
//! dictionary-encoded.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use tracebraid_history::Value;

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Begin of the value, in nanoseconds from the origin; `None` in queries for a moment.
    pub time: Option<i64>,
    /// Path of the attribute.
    pub attribute: Arc<str>,
    /// The value.
    pub value: Value,
}

/// Writes rows as one file, in batches.
///
/// # Errors
/// If the output cannot be written.
pub fn write(rows: &[Row], to: impl Write) -> Result<(), ArrowError> {
    const BATCH: usize = 1 << 16;
    // One dictionary for all batches, because the file format does not support replacing it.
    let attributes = Dictionary::of(rows.iter().map(|row| &*row.attribute));
    let texts = Dictionary::of(rows.iter().filter_map(|row| text(&row.value)));
    let schema = Arc::new(schema());
    let mut writer = FileWriter::try_new(to, &schema)?;
    for rows in rows.chunks(BATCH) {
        let times: TimestampNanosecondArray = rows.iter().map(|row| row.time).collect();
        let numbers: Int64Array = rows.iter().map(|row| number(&row.value)).collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(times.with_timezone("UTC")),
            Arc::new(attributes.column(rows.iter().map(|row| Some(&*row.attribute)))?),
            Arc::new(numbers),
            Arc::new(texts.column(rows.iter().map(|row| text(&row.value)))?),
        ];
        writer.write(&RecordBatch::try_new(schema.clone(), columns)?)?;
    }
    writer.finish()
}

fn schema() -> Schema {
    let words = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    Schema::new(vec![
        Field::new(
            "time",
            DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            true,
        ),
        Field::new("attribute", words(), false),
        Field::new("number", DataType::Int64, true),
        Field::new("text", words(), true),
    ])
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) => Some(text),
        Value::State(state) => Some(state.name()),
        _ => None,
    }
}

/// Distinct texts with their index, in the order of first use.
struct Dictionary<'r> {
    numbers: HashMap<&'r str, i32>,
    values: Arc<StringArray>,
}

impl<'r> Dictionary<'r> {
    fn of(texts: impl Iterator<Item = &'r str>) -> Dictionary<'r> {
        let mut numbers = HashMap::new();
        let mut values = Vec::new();
        for text in texts {
            numbers.entry(text).or_insert_with(|| {
                values.push(text);
                values.len() as i32 - 1
            });
        }
        Dictionary {
            numbers,
            values: Arc::new(StringArray::from(values)),
        }
    }

    fn column<'t>(
        &self,
        texts: impl Iterator<Item = Option<&'t str>>,
    ) -> Result<DictionaryArray<Int32Type>, ArrowError> {
        let keys: Int32Array = texts.map(|text| self.numbers.get(text?).copied()).collect();
        DictionaryArray::try_new(keys, self.values.clone())
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::{Array, types::Int64Type, types::TimestampNanosecondType};
    use arrow_ipc::reader::FileReader;

    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let values = [
            Value::Number(-7),
            Value::Text("idle".into()),
            Value::Null,
            Value::State(tracebraid_history::ThreadState::Running),
        ];
        // More rows than fit in one batch.
        let rows: Vec<Row> = (0..100_000_i64)
            .map(|at| Row {
                time: (at % 5 != 0).then_some(at),
                attribute: format!("cpu/{}/state", at % 3).into(),
                value: values[at as usize % values.len()].clone(),
            })
            .collect();
        let mut bytes = Vec::new();
        write(&rows, &mut bytes).unwrap();
        let mut found = Vec::new();
        for batch in FileReader::try_new(std::io::Cursor::new(bytes), None).unwrap() {
            let batch = batch.unwrap();
            let times = batch.column(0).as_primitive::<TimestampNanosecondType>();
            let numbers = batch.column(2).as_primitive::<Int64Type>();
            let [attributes, texts] =
                [1, 3].map(|at| batch.column(at).as_dictionary::<Int32Type>().clone());
            let (attributes, texts) = (
                attributes.downcast_dict::<StringArray>().unwrap(),
                texts.downcast_dict::<StringArray>().unwrap(),
            );
            for at in 0..batch.num_rows() {
                use arrow_array::ArrayAccessor;
                let time = times.is_valid(at).then(|| times.value(at));
                let number = numbers.is_valid(at).then(|| numbers.value(at));
                let text = texts.is_valid(at).then(|| texts.value(at).to_owned());
                found.push((time, attributes.value(at).to_owned(), number, text));
            }
        }
        assert_eq!(found.len(), rows.len());
        for (row, found) in rows.iter().zip(found) {
            let own = text(&row.value).map(str::to_owned);
            assert_eq!(
                found,
                (row.time, row.attribute.to_string(), number(&row.value), own)
            );
        }
    }
}
