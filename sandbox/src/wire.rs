//! How paths and words cross process borders as JSON: text when it is UTF-8, an array of bytes when it is not.
//!
//! Must never lose a byte: a path that comes out differently would be another path.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Bytes(Vec<u8>),
}

impl Word {
    fn of(word: &OsStr) -> Self {
        match word.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(word.as_bytes().to_vec()),
        }
    }

    fn into_os(self) -> OsString {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes),
        }
    }
}

/// For a field of type `PathBuf`.
pub(crate) mod path {
    use super::{Deserialize as _, Deserializer, PathBuf, Serialize as _, Serializer, Word};

    pub(crate) fn serialize<S: Serializer>(
        path: &std::path::Path,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        Word::of(path.as_os_str()).serialize(out)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Word::deserialize(from).map(|word| word.into_os().into())
    }
}

/// For a field of type `Vec<PathBuf>`.
pub(crate) mod paths {
    use super::{Deserialize as _, Deserializer, PathBuf, Serializer, Word};

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(paths.iter().map(|path| Word::of(path.as_os_str())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let words = Vec::<Word>::deserialize(from)?;
        Ok(words
            .into_iter()
            .map(|word| word.into_os().into())
            .collect())
    }
}

/// For a field of type `Vec<OsString>`.
pub(crate) mod words {
    use super::{Deserialize as _, Deserializer, OsString, Serializer, Word};

    pub(crate) fn serialize<S: Serializer>(words: &[OsString], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(words.iter().map(|word| Word::of(word)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<OsString>, D::Error> {
        let words = Vec::<Word>::deserialize(from)?;
        Ok(words.into_iter().map(Word::into_os).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Probe {
        #[serde(with = "path")]
        one: PathBuf,
        #[serde(with = "words")]
        many: Vec<OsString>,
    }

    #[test]
    fn bytes_that_are_not_text_survive() {
        let odd = OsString::from_vec(vec![b'a', 0xff, b'\n']);
        let probe = Probe {
            one: odd.clone().into(),
            many: vec!["plain".into(), odd],
        };
        let json = serde_json::to_string(&probe).unwrap();
        assert_eq!(serde_json::from_str::<Probe>(&json).unwrap(), probe);
    }
}
