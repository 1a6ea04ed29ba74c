//! Writing a table.

use super::super::column::{Kind, Table};
use super::super::owners::{self, OWNERS};
use super::{GROUP, properties, schema};
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::ColumnPath;
use std::io::Write;
use std::sync::Arc;

/// Tables with fewer rows are not compressed: setting up the compression of a column takes longer than writing and reading its few
/// bytes, and a sweep has many short runs.
const MANY: usize = 1 << 13;

/// Zstandard's level.
const LEVEL: i32 = 3;

/// Writes a table, with what made it as metadata: keys and values.
pub(in super::super) fn write<O, R>(
    to: impl Write + Send,
    table: &Table<O, R>,
    made_by: &[(&str, String)],
    owners: &[O],
) -> Result<(), ParquetError> {
    // Each row with its owner, and the row before it of the same owner.
    let mut rows: Vec<(usize, Option<&R>, &R)> = Vec::new();
    for (number, owner) in owners.iter().enumerate() {
        let all = (table.rows)(owner);
        let before = std::iter::once(None).chain(all.iter().map(Some));
        rows.extend(before.zip(all).map(|(before, row)| (number, before, row)));
    }
    let properties = Arc::new(properties_of(table, made_by, owners, rows.len())?);
    let mut file = SerializedFileWriter::new(to, schema(table)?, properties)?;
    for rows in rows.chunks(GROUP) {
        let mut group = file.next_row_group()?;
        for key in 0..table.keys.len() {
            let names: Vec<ByteArray> = owners
                .iter()
                .map(|owner| (table.key)(owner).get(key).copied().unwrap_or_default().into())
                .collect();
            let cells: Vec<ByteArray> =
                rows.iter().filter_map(|(owner, ..)| names.get(*owner).cloned()).collect();
            add::<ByteArrayType, _>(&mut group, &cells, None)?;
        }
        for column in table.columns {
            if let Kind::Bytes { get, .. } = column.kind {
                let cells: Vec<ByteArray> =
                    rows.iter().map(|(.., row)| get(row).to_vec().into()).collect();
                add::<ByteArrayType, _>(&mut group, &cells, None)?;
                continue;
            }
            let cells: Vec<Option<u64>> =
                rows.iter().map(|(_, before, row)| column.integer(*before, row)).collect();
            // Parquet keeps unsigned integers in signed ones of the same bits.
            let values: Vec<i64> = cells.iter().flatten().map(|cell| cell.cast_signed()).collect();
            let levels: Option<Vec<i16>> = column
                .is_optional()
                .then(|| cells.iter().map(|cell| cell.is_some().into()).collect());
            add::<Int64Type, _>(&mut group, &values, levels.as_deref())?;
        }
        group.close()?;
    }
    file.close()?;
    Ok(())
}

/// The next column of a row group.
pub(super) fn add<D: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[D::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has fewer columns".into()));
    };
    column.typed::<D>().write_batch(values, levels, None)?;
    column.close()
}

fn properties_of<O, R>(
    table: &Table<O, R>,
    made_by: &[(&str, String)],
    owners: &[O],
    rows: usize,
) -> Result<WriterProperties, ParquetError> {
    let pair = |key: &str, value: String| KeyValue { key: key.into(), value: Some(value) };
    let keys = table.keys.iter().map(|(name, doc)| (*name, *doc));
    let columns = table.columns.iter().map(|column| (column.name, column.doc));
    let docs: Vec<String> =
        keys.chain(columns).map(|(name, doc)| format!("{name}: {doc}\n")).collect();
    let mut metadata: Vec<KeyValue> =
        made_by.iter().map(|(key, value)| pair(key, value.clone())).collect();
    metadata.push(pair("transom.columns", docs.concat()));
    metadata.push(pair(OWNERS, owners::listed(table, owners).to_string()));
    let mut builder = properties()
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(metadata));
    for column in table.columns {
        let path = ColumnPath::from(column.name);
        let encoding =
            if column.is_bytes() { Encoding::PLAIN } else { Encoding::DELTA_BINARY_PACKED };
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path.clone(), encoding);
        if rows >= MANY {
            let zstd = Compression::ZSTD(ZstdLevel::try_new(LEVEL)?);
            builder = builder.set_column_compression(path, zstd);
        }
    }
    Ok(builder.build())
}
