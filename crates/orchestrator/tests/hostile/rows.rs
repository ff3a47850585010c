//! All rows, in the order of the page.

mod calls;
mod lists;
mod noise;
mod starting;
mod web;

use crate::row::Row;

pub(crate) fn all() -> Vec<Row> {
    [starting::rows(), calls::rows(), noise::rows(), lists::rows(), web::rows()]
        .into_iter()
        .flatten()
        .collect()
}
