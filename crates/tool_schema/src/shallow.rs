//! JSON that is taken apart only as far as is needed. What a stranger sends may be small as text and huge as a tree: an
//! array of a million numbers takes a few megabytes in one form and a hundred in the other.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The first items of an array, and whether there are more.
#[derive(Debug)]
pub struct Items<'j> {
    pub items: Vec<&'j RawValue>,
    pub has_more: bool,
}

/// Nothing where it is no array.
pub fn items<'j>(text: &'j str, max: usize) -> Option<Items<'j>> {
    struct First(usize);

    impl<'j> Visitor<'j> for First {
        type Value = Items<'j>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'j>>(self, mut seq: A) -> Result<Items<'j>, A::Error> {
            let mut items = Vec::new();
            while items.len() < self.0 {
                let Some(item) = seq.next_element()? else {
                    return Ok(Items { items, has_more: false });
                };
                items.push(item);
            }
            let mut has_more = false;
            while seq.next_element::<IgnoredAny>()?.is_some() {
                has_more = true;
            }
            Ok(Items { items, has_more })
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(text);
    let items = (&mut deserializer).deserialize_seq(First(max)).ok()?;
    deserializer.end().ok()?;
    Some(items)
}

/// The first fields of an object; nothing where it is none.
pub fn fields<'j>(text: &'j str, max: usize) -> Option<Vec<(Cow<'j, str>, &'j RawValue)>> {
    struct First(usize);

    impl<'j> Visitor<'j> for First {
        type Value = Vec<(Cow<'j, str>, &'j RawValue)>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("an object")
        }

        fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut fields = Vec::new();
            while let Some(Name(name)) = map.next_key()? {
                if fields.len() < self.0 {
                    fields.push((name, map.next_value()?));
                } else {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            Ok(fields)
        }
    }

    let mut deserializer = serde_json::Deserializer::from_str(text);
    (&mut deserializer).deserialize_map(First(max)).ok()
}

/// Whether it is JSON of so many values at most, those inside of others included.
pub fn has_at_most(text: &str, max: usize) -> bool {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let left = Cell::new(max);
    Counted(&left).deserialize(&mut deserializer).is_ok() && deserializer.end().is_ok()
}

/// Takes away one for each value, and fails where there is none left.
#[derive(Clone, Copy)]
struct Counted<'c>(&'c Cell<usize>);

impl Counted<'_> {
    fn count<E: serde::de::Error>(self) -> Result<(), E> {
        let left = self.0.get().checked_sub(1).ok_or_else(|| E::custom("too many"))?;
        self.0.set(left);
        Ok(())
    }
}

impl<'j> DeserializeSeed<'j> for Counted<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'j>>(self, deserializer: D) -> Result<(), D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'j> Visitor<'j> for Counted<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'j>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'j>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(self)?;
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Name<'j>(#[serde(borrow)] Cow<'j, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted() {
        let text = r#"{"a": [1, -2, 2.5, "x\n", null, true], "b": {"c": {}}}"#;
        assert!(has_at_most(text, 10) && !has_at_most(text, 9));
        assert!(!has_at_most("[1", 10) && !has_at_most("[1] 2", 10));
    }

    #[test]
    fn only_the_first_ones_are_kept() {
        let numbers = format!("[{}]", vec!["1"; 1_000_000].join(","));
        let first = items(&numbers, 10).unwrap();
        assert_eq!((first.items.len(), first.has_more), (10, true));
        let all = items(" [1, {}] ", 2).unwrap();
        assert_eq!((all.items.len(), all.has_more), (2, false));
        for none in ["{}", "5", "[1", "[1] 2", ""] {
            assert!(items(none, 5).is_none(), "{none}");
        }
        let fields = fields(r#"{"a": [1], "b\n": 2, "c": 3}"#, 2).unwrap();
        assert_eq!(fields.len(), 2);
        assert_eq!((&*fields[1].0, fields[1].1.get()), ("b\n", "2"));
    }
}
