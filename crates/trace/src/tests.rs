//! Captures made by hand, with values worked by hand.

mod captures;
mod hostile;
pub(crate) mod made;
