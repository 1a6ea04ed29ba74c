//! Writing the table with a line for each run.

use super::super::summary::{Line, Summary};
use super::write::add;
use super::{properties, text};
use ::parquet::basic::{Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// The file: texts, whole numbers for point and seed, and numbers that may be missing.
pub(in super::super) fn summary(summary: &Summary) -> Result<Vec<u8>, ParquetError> {
    let number = |name: &str, physical, repetition| {
        let field = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        field.build().map(Arc::new)
    };
    let whole = |name| number(name, Physical::INT64, Repetition::REQUIRED);
    let mut fields: Vec<TypePtr> =
        vec![text("run")?, text("scenario")?, whole("point")?, whole("seed")?, text("state")?];
    for path in &summary.settings {
        fields.push(text(path)?);
    }
    for name in &summary.numbers {
        fields.push(number(name, Physical::DOUBLE, Repetition::OPTIONAL)?);
    }
    let schema = Arc::new(Type::group_type_builder("summary").with_fields(fields).build()?);
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties().build()))?;
    let mut group = file.next_row_group()?;
    let lines = &summary.lines;
    let texts = |get: &dyn Fn(&Line) -> String| -> Vec<ByteArray> {
        lines.iter().map(|line| get(line).into_bytes().into()).collect()
    };
    add::<ByteArrayType, _>(&mut group, &texts(&|line| line.run.clone()), None)?;
    add::<ByteArrayType, _>(&mut group, &texts(&|line| line.scenario.clone()), None)?;
    let whole = |get: &dyn Fn(&Line) -> u64| -> Vec<i64> {
        lines.iter().map(|line| get(line).cast_signed()).collect()
    };
    add::<Int64Type, _>(&mut group, &whole(&|line| line.point as u64), None)?;
    add::<Int64Type, _>(&mut group, &whole(&|line| line.seed), None)?;
    add::<ByteArrayType, _>(&mut group, &texts(&|line| line.state.clone()), None)?;
    for column in 0..summary.settings.len() {
        let cell =
            |line: &Line| summary.settings_of(line).nth(column).unwrap_or_default().to_owned();
        add::<ByteArrayType, _>(&mut group, &texts(&cell), None)?;
    }
    let cells: Vec<Vec<Option<f64>>> =
        lines.iter().map(|line| summary.numbers_of(line).collect()).collect();
    for column in 0..summary.numbers.len() {
        let cells: Vec<Option<f64>> =
            cells.iter().map(|line| line.get(column).copied().flatten()).collect();
        let values: Vec<f64> = cells.iter().copied().flatten().collect();
        let levels: Vec<i16> = cells.iter().map(|cell| cell.is_some().into()).collect();
        add::<DoubleType, _>(&mut group, &values, Some(&levels))?;
    }
    group.close()?;
    file.close()?;
    Ok(bytes)
}
