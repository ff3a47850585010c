//! Small helpers for reading definitions with serde.

use serde::{Deserialize, Deserializer, de};

/// A field that may be absent but not null: null is somebody's mistake, not a way to say "nothing".
/// (Where null is a value, as in `equals: null`, it is kept.)
pub(crate) fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
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
