//! Module `microfiche._core`: converts arguments and results, releases the lock.
use pyo3::prelude::*;

#[pymodule]
mod _core {}
