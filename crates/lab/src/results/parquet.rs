//! Tables as Parquet files, from which a run is read back.
//!
//! Theory of operation. A table is a flat schema: a text for each key, then an unsigned integer for each column (or bytes), optional if its cells may
//! be empty. Rows are in the order of their owners, and the file's metadata lists the owners, including those without rows. The metadata also holds
//! the resolved scenario, the seed, the program's version and the descriptions of the columns.
//!
//! The same rows give the same bytes: everything that the writer could choose is chosen here. Integers are stored as differences
//! (`DELTA_BINARY_PACKED`), which suits totals that grow, and compressed with Zstandard unless they are few. The bytes are those of one build of the program:
//! another version of the libraries may compress differently.
//!
//! A file that is read may be anything. Its schema has to be the one expected, its rows those of its owners, and each row has to be one that
//! could have been written.

mod read;
mod summary;
mod write;

pub(super) use read::read;
pub(super) use summary::summary;
pub(super) use write::write;

use super::column::Table;
use ::parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use ::parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Rows in a row group: a reader has one column of it in memory at once.
const GROUP: usize = 1 << 18;

/// The schema of a table.
fn schema<O, R>(table: &Table<O, R>) -> Result<TypePtr, ParquetError> {
    let keys = table.keys.iter().map(|(name, _)| text(name));
    let columns = table.columns.iter().map(|column| {
        let physical = if column.is_bytes() { Physical::BYTE_ARRAY } else { Physical::INT64 };
        let repetition =
            if column.is_optional() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(column.name, physical).with_repetition(repetition);
        let field = match column.is_bytes() {
            true => field,
            false => field
                .with_converted_type(ConvertedType::UINT_64)
                .with_logical_type(Some(LogicalType::integer(64, false))),
        };
        field.build().map(Arc::new)
    });
    let fields: Result<Vec<TypePtr>, ParquetError> = keys.chain(columns).collect();
    Type::group_type_builder(table.name).with_fields(fields?).build().map(Arc::new)
}

/// A column of texts.
fn text(name: &str) -> Result<TypePtr, ParquetError> {
    Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_converted_type(ConvertedType::UTF8)
        .with_logical_type(Some(LogicalType::String))
        .build()
        .map(Arc::new)
}

/// The settings that all files share: who made them, and the version of the format.
fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_created_by("transom".into())
        .set_writer_version(WriterVersion::PARQUET_1_0)
}
