//! JSON pointers, built only when one is needed: a rule hands down a chain of names on the stack, and
//! pays for text only where it has something to say.

use std::fmt;

/// A place in a document, as the way to it.
#[derive(Debug, Clone, Copy)]
pub enum Pointer<'a> {
    Root,
    Key(&'a Pointer<'a>, &'a str),
    Index(&'a Pointer<'a>, usize),
}

impl<'a> Pointer<'a> {
    pub fn key(&'a self, key: &'a str) -> Self {
        Self::Key(self, key)
    }

    pub fn index(&'a self, index: usize) -> Self {
        Self::Index(self, index)
    }
}

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(parent, key) => write!(out, "{parent}/{}", escape(key)),
            Self::Index(parent, index) => write!(out, "{parent}/{index}"),
        }
    }
}

pub(crate) use budget::schema::join;

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The segments of a pointer's text.
pub(crate) fn segments(pointer: &str) -> impl Iterator<Item = String> + '_ {
    let segments = pointer.split('/').skip(1);
    segments.map(|segment| segment.replace("~1", "/").replace("~0", "~"))
}
