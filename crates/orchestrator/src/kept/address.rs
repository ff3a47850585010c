//! The address of what is kept, or of a part of it: `mcp-kept:ID`, `mcp-kept:ID?offset=0&length=65536`. Offsets are bytes of
//! the JSON that is kept; parts begin and end between letters, so that one after the other they are the whole.

use std::fmt;

/// With this an address of what is kept begins.
pub const SCHEME: &str = "mcp-kept:";
/// How long a part is if nobody says.
pub const PART_BYTES: u64 = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address<'a> {
    pub id: &'a str,
    /// Nothing for all of it.
    pub part: Option<Part>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub offset: u64,
    pub length: u64,
}

impl<'a> Address<'a> {
    /// Nothing where it is no such address.
    pub fn read(uri: &'a str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME)?;
        let Some((id, query)) = rest.split_once('?') else {
            return Some(Self { id: rest, part: None });
        };
        let mut part = Part { offset: 0, length: PART_BYTES };
        for field in query.split('&') {
            let (name, value) = field.split_once('=')?;
            match name {
                "offset" => part.offset = value.parse().ok()?,
                "length" => part.length = value.parse().ok().filter(|length| *length > 0)?,
                _ => return None,
            }
        }
        Some(Self { id, part: Some(part) })
    }

    /// Of the first part of the same.
    pub fn first(self) -> Self {
        Self { part: Some(Part { offset: 0, length: PART_BYTES }), ..self }
    }

    /// Of the part behind this one, as long as there is one in so many bytes.
    pub fn next(self, bytes: u64) -> Option<Self> {
        let Part { offset, length } = self.part?;
        let offset = offset.checked_add(length).filter(|offset| *offset < bytes)?;
        Some(Self { part: Some(Part { offset, length }), ..self })
    }
}

impl fmt::Display for Address<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{SCHEME}{}", self.id)?;
        match self.part {
            Some(Part { offset, length }) => write!(out, "?offset={offset}&length={length}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_lead_back() {
        for uri in ["mcp-kept:0a", "mcp-kept:0a?offset=5&length=7"] {
            assert_eq!(Address::read(uri).unwrap().to_string(), uri);
        }
        let whole = Address::read("mcp-kept:0a").unwrap();
        assert_eq!(whole.next(1), None);
        let first = whole.first();
        assert_eq!(first.to_string(), "mcp-kept:0a?offset=0&length=65536");
        let second = first.next(65_537).unwrap();
        assert_eq!(second.to_string(), "mcp-kept:0a?offset=65536&length=65536");
        assert_eq!(second.next(100_000), None);
        assert_eq!(Address::read("mcp-kept:0a?offset=9").unwrap().part.unwrap().length, PART_BYTES);
        for odd in [
            "",
            "file:0a",
            "mcp-kept:0a?",
            "mcp-kept:0a?offset",
            "mcp-kept:0a?offset=-1",
            "mcp-kept:0a?length=0",
            "mcp-kept:0a?offset=99999999999999999999",
            "mcp-kept:0a?size=1",
        ] {
            assert_eq!(Address::read(odd), None, "{odd}");
        }
        let far = Address::read("mcp-kept:0a?offset=18446744073709551615&length=2").unwrap();
        assert_eq!(far.next(u64::MAX), None);
    }
}
