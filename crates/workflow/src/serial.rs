//! Small helpers for reading definitions with serde.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Number, Value};

/// A field that may be absent but not null: null is somebody's mistake, not a way to say "nothing".
/// (Where null is a value, as in `equals: null`, it is kept.)
pub(crate) fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// A struct that is written as an object. By itself serde would take a list of its fields as well.
pub(crate) struct Fields<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Fields<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OnlyMap<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyMap<T> {
            type Value = T;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(fields))
            }
        }

        deserializer.deserialize_map(OnlyMap(PhantomData)).map(Self)
    }
}

/// Any value, in which no object has the same key twice: `Value` itself would lose one of them.
pub(crate) struct Distinct(pub Value);

impl Distinct {
    /// Reads a field that may be absent.
    pub(crate) fn present<'de, D>(deserializer: D) -> Result<Option<Value>, D::Error>
    where
        D: Deserializer<'de>,
    {
        Self::deserialize(deserializer).map(|Self(value)| Some(value))
    }

    /// Reads a list that may be absent.
    pub(crate) fn present_list<'de, D>(deserializer: D) -> Result<Option<Vec<Value>>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let list: Vec<Self> = Vec::deserialize(deserializer)?;
        Ok(Some(list.into_iter().map(|Self(value)| value).collect()))
    }
}

impl<'de> Deserialize<'de> for Distinct {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DistinctVisitor).map(Self)
    }
}

struct DistinctVisitor;

impl<'de> Visitor<'de> for DistinctVisitor {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Number::from_f64(number).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Distinct(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, Distinct(value))) = fields.next_entry::<String, Distinct>()? {
            if object.insert(key, value).is_some() {
                return Err(de::Error::custom("a key stands twice"));
            }
        }
        Ok(Value::Object(object))
    }
}

/// A whole number that may be written `5` or `5.0`: JSON does not tell them apart.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub u32);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(deserializer)?;
        whole(&number).map(Self).ok_or_else(|| {
            de::Error::invalid_value(de::Unexpected::Other(&number.to_string()), &"a whole number")
        })
    }
}

pub(crate) fn whole(number: &serde_json::Number) -> Option<u32> {
    if let Some(number) = number.as_u64() {
        return u32::try_from(number).ok();
    }
    let float = number.as_f64()?;
    let fits = float.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&float);
    // In range and without a fraction, so the conversion is exact.
    fits.then_some(float as u32)
}
