//! Tables of results, as Arrow arrays that other packages take without a copy.

use crate::error::value;
use arrow_array::builder::StringBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader, UInt64Array};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::HashMap;
use std::sync::Arc;
use transom_lab::results::{Array, Cells};

/// A table of results. Arrow's PyCapsule interface gives it to others without a copy: ``polars.DataFrame(table)``,
/// ``pyarrow.table(table)``, ``pandas.DataFrame.from_arrow(table)``.
#[pyclass(frozen, module = "transom")]
pub(crate) struct Table {
    name: &'static str,
    batch: RecordBatch,
}

impl Table {
    pub(crate) fn new(name: &'static str, arrays: Vec<Array>) -> Result<Table, ArrowError> {
        let (mut fields, mut columns) = (Vec::new(), Vec::<ArrayRef>::new());
        for array in arrays {
            let (kind, optional, cells): (_, _, ArrayRef) = match array.cells {
                Cells::Texts(texts) => {
                    let mut built = StringBuilder::new();
                    for (text, times) in &texts {
                        (0..*times).for_each(|_| built.append_value(text));
                    }
                    (DataType::Utf8, false, Arc::new(built.finish()))
                }
                Cells::Integers(cells) => {
                    (DataType::UInt64, false, Arc::new(UInt64Array::from(cells)))
                }
                Cells::Maybe(cells) => (DataType::UInt64, true, Arc::new(UInt64Array::from(cells))),
            };
            let about = HashMap::from([("doc".to_owned(), array.doc.to_owned())]);
            fields.push(Field::new(array.name, kind, optional).with_metadata(about));
            columns.push(cells);
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
        Ok(Table { name, batch })
    }
}

#[pymethods]
impl Table {
    /// The name: flows, links or completions.
    #[getter]
    fn name(&self) -> &str {
        self.name
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The description of a column, with its unit.
    fn describe(&self, column: &str) -> PyResult<String> {
        let schema = self.batch.schema();
        let field = schema.field_with_name(column).map_err(value)?;
        Ok(field.metadata().get("doc").cloned().unwrap_or_default())
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.batch.num_rows(), self.batch.num_columns());
        format!("<transom.Table {}: {rows} rows, {columns} columns>", self.name)
    }

    /// The schema, for Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(value)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The table, for Arrow's PyCapsule interface. The reader may ask for another schema, and gets this one.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        // The arrays are shared: this clones pointers.
        let batches = std::iter::once(Ok(self.batch.clone()));
        let reader: Box<dyn RecordBatchReader + Send> =
            Box::new(RecordBatchIterator::new(batches, self.batch.schema()));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
    }
}
