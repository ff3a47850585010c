//! The words of an event as PostgreSQL's index of words takes them, without its having to take a text apart.

use std::error::Error;

use bytes::{BufMut as _, BytesMut};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::words::words;

/// By what a search finds an event: the letter in front keeps the words of texts apart from owners.
#[derive(Debug)]
pub(super) struct TsVector(Vec<String>);

impl TsVector {
    /// The owner's word is one already.
    pub(super) fn of(text: &str, owner_word: &str) -> Self {
        let mut lexemes: Vec<String> = words(text).iter().map(|word| format!("t{word}")).collect();
        lexemes.push(owner_word.to_owned());
        Self(lexemes)
    }
}

impl ToSql for TsVector {
    /// How many there are, and each with the number of its places, which is none.
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_i32(i32::try_from(self.0.len())?);
        for lexeme in &self.0 {
            out.put_slice(lexeme.as_bytes());
            out.put_u8(0);
            out.put_u16(0);
        }
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::TS_VECTOR
    }

    to_sql_checked!();
}
