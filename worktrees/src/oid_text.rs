//! Object ids as text, for what is stored. Nothing else is decided here.

use git2::Oid;
use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(oid: &Oid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&oid.to_string())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Oid, D::Error> {
    let text = String::deserialize(deserializer)?;
    Oid::from_str(&text).map_err(D::Error::custom)
}

/// The same for one that may be missing.
pub(crate) mod option {
    use git2::Oid;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde gives a reference")]
    pub(crate) fn serialize<S: Serializer>(
        oid: &Option<Oid>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match oid {
            Some(oid) => serializer.serialize_some(&oid.to_string()),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Oid>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| Oid::from_str(&text).map_err(D::Error::custom))
            .transpose()
    }
}
