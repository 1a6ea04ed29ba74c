//! Logs as tables: Parquet and Arrow IPC files with a column for each key, a row for each record.
//!
//! Numbers are unsigned with 64 bits, words are text. A column is null where the record has no such key. The schema's metadata has the time of the
//! clock's origin.

use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt64Type;
use arrow_array::{Array as _, ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::Value;

use super::json::{Object, object, record};
use super::{ConvertError, Log};

const NUMBER: DataType = DataType::UInt64;
const TEXT: DataType = DataType::Utf8;
const ORIGIN: &str = "transom_origin_ns";
/// Rows of a batch.
const ROWS: usize = 1 << 16;

/// The columns: the keys of docs/event-log.md.
const COLUMNS: [(&str, DataType); 36] = [
    ("seq", NUMBER),
    ("ns", NUMBER),
    ("connection", NUMBER),
    ("event", TEXT),
    ("state", TEXT),
    ("phase", TEXT),
    ("limited_by", TEXT),
    ("snd_una", NUMBER),
    ("rcv_nxt", NUMBER),
    ("start", NUMBER),
    ("bytes", NUMBER),
    ("snd_wnd", NUMBER),
    ("rcv_wnd", NUMBER),
    ("cwnd", NUMBER),
    ("ssthresh", NUMBER),
    ("in_flight", NUMBER),
    ("srtt_us", NUMBER),
    ("rto_us", NUMBER),
    ("rtt_us", NUMBER),
    ("tcp_flags", NUMBER),
    ("backoffs", NUMBER),
    ("local", TEXT),
    ("remote", TEXT),
    ("from", TEXT),
    ("error", TEXT),
    ("variable", TEXT),
    ("least", NUMBER),
    ("most", NUMBER),
    ("own", NUMBER),
    ("effective", NUMBER),
    ("decided_by", TEXT),
    ("conflict", DataType::Boolean),
    ("layer", NUMBER),
    ("name", TEXT),
    ("fate", TEXT),
    ("limited_because", TEXT),
];

fn failed(error: impl std::fmt::Display) -> ConvertError {
    ConvertError::Form(error.to_string())
}

fn schema(log: &Log) -> SchemaRef {
    let field = |(name, kind): &(&str, DataType)| Field::new(*name, kind.clone(), true);
    let fields: Vec<Field> = COLUMNS.iter().map(field).collect();
    let metadata = HashMap::from([(ORIGIN.to_owned(), log.origin.to_string())]);
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

fn batches(log: &Log, schema: &SchemaRef) -> impl Iterator<Item = Result<RecordBatch, ArrowError>> {
    log.records.chunks(ROWS).map(|records| {
        let objects: Vec<Object> =
            records.iter().map(|(number, record)| object(*number, record)).collect();
        let columns = COLUMNS.iter().map(|(name, kind)| column(&objects, name, kind));
        RecordBatch::try_new(schema.clone(), columns.collect())
    })
}

fn column(objects: &[Object], name: &str, kind: &DataType) -> ArrayRef {
    let values = objects.iter().map(|object| object.get(name));
    match kind {
        DataType::UInt64 => Arc::new(values.map(|value| value?.as_u64()).collect::<UInt64Array>()),
        DataType::Boolean => {
            Arc::new(values.map(|value| value?.as_bool()).collect::<BooleanArray>())
        }
        _ => {
            // The layer that decided is a number, and stands beside words.
            let text = |value: Option<&Value>| match value? {
                Value::String(text) => Some(text.clone()),
                Value::Null => None,
                other => Some(other.to_string()),
            };
            Arc::new(values.map(text).collect::<StringArray>())
        }
    }
}

/// The records of a batch. Columns that are not known are left alone.
fn rows(batch: &RecordBatch, log: &mut Log) -> Result<(), ConvertError> {
    let mut objects = vec![Object::new(); batch.num_rows()];
    for (name, kind) in &COLUMNS {
        let Some(array) = batch.column_by_name(name) else { continue };
        if array.data_type() != kind {
            let what = format!("column {name} has the type {}, not {kind}", array.data_type());
            return Err(ConvertError::Form(what));
        }
        for (row, object) in objects.iter_mut().enumerate() {
            if array.is_null(row) {
                continue;
            }
            let value = match kind {
                DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).into(),
                DataType::Boolean => array.as_boolean().value(row).into(),
                _ => array.as_string::<i32>().value(row).into(),
            };
            object.insert((*name).into(), value);
        }
    }
    // Another batch may have been before this one.
    let before = log.records.len() + log.unknown as usize;
    for (number, object) in (before + 1..).zip(&objects) {
        let bad = |what: String| ConvertError::Record { number, what };
        log.take(record(object).map_err(bad)?);
    }
    Ok(())
}

fn of_schema(schema: &Schema) -> Log {
    let origin = schema.metadata().get(ORIGIN).and_then(|origin| origin.parse().ok());
    Log { origin: origin.unwrap_or(0), ..Log::default() }
}

pub(super) fn write_arrow(log: &Log) -> Result<Vec<u8>, ConvertError> {
    let schema = schema(log);
    let mut writer = FileWriter::try_new(Vec::new(), &schema).map_err(failed)?;
    for batch in batches(log, &schema) {
        writer.write(&batch.map_err(failed)?).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    writer.into_inner().map_err(failed)
}

pub(super) fn read_arrow(bytes: &[u8]) -> Result<Log, ConvertError> {
    let reader = FileReader::try_new(Cursor::new(bytes), None).map_err(failed)?;
    let mut log = of_schema(&reader.schema());
    for batch in reader {
        rows(&batch.map_err(failed)?, &mut log)?;
    }
    Ok(log)
}

pub(super) fn write_parquet(log: &Log) -> Result<Vec<u8>, ConvertError> {
    let schema = schema(log);
    let level = ZstdLevel::default();
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
    let mut bytes = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut bytes, schema.clone(), Some(properties)).map_err(failed)?;
    for batch in batches(log, &schema) {
        writer.write(&batch.map_err(failed)?).map_err(failed)?;
    }
    writer.close().map_err(failed)?;
    Ok(bytes)
}

pub(super) fn read_parquet(bytes: &[u8]) -> Result<Log, ConvertError> {
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(failed)?;
    let mut log = of_schema(builder.schema());
    for batch in builder.build().map_err(failed)? {
        rows(&batch.map_err(failed)?, &mut log)?;
    }
    Ok(log)
}
