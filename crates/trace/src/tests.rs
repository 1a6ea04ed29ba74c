//! Captures made by hand, with values worked by hand.

mod captures;
mod gallery;
mod hostile;
pub(crate) mod made;
mod numbers;
