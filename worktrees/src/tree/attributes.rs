//! Which attributes a path has, from the rule files on the way to it. Bytes are given to this module; it
//! opens nothing. Only the six attributes that decide about a blob are looked for.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use gix_attributes::glob::pattern::Case;
use gix_attributes::search::{MetadataCollection, Outcome};
use gix_attributes::{Search, StateRef};
use gix_filter::eol::{AttributesDigest, Mode};

use super::Settings;

const WANTED: [&str; 6] = [
    "crlf",
    "text",
    "eol",
    "ident",
    "filter",
    "working-tree-encoding",
];

/// What is to be done with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Traits {
    pub(crate) digest: AttributesDigest,
    pub(crate) ident: bool,
    /// The name of the external filter that is asked for.
    pub(crate) filter: Option<String>,
    /// An encoding other than UTF-8 is asked for.
    pub(crate) encoding: bool,
}

impl Traits {
    /// Whether a blob is checked out byte by byte.
    pub(crate) fn checked_out_as_is(&self, settings: &Settings) -> bool {
        !self.ident && self.digest.to_eol(settings.eol) != Some(Mode::CrLf)
    }
}

/// The rules in force, from the weakest to the strongest; those of folders are pushed and popped.
#[derive(Debug)]
pub(crate) struct Attributes {
    search: Search,
    strongest: Search,
    names: MetadataCollection,
    outcome: Outcome,
    case: Case,
    fresh: bool,
}

impl Attributes {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut attributes = Self {
            search: Search::default(),
            strongest: Search::default(),
            names: MetadataCollection::default(),
            outcome: Outcome::default(),
            case: if settings.ignore_case {
                Case::Fold
            } else {
                Case::Sensitive
            },
            fresh: false,
        };
        attributes.add(
            b"[attr]binary -diff -merge -text",
            PathBuf::from("built-in"),
            true,
        );
        attributes.add(
            &settings.system_attributes,
            PathBuf::from("/etc/gitattributes"),
            true,
        );
        attributes.add(&settings.user_attributes, PathBuf::from("/user"), true);
        let added = attributes.strongest.add_patterns_buffer(
            &settings.local_attributes,
            PathBuf::from("info/attributes"),
            None,
            &mut attributes.names,
            true,
        );
        added.expect("rules without a folder of their own have no path that could be refused");
        attributes
    }

    /// Adds the rules of a folder (its path ends in `/`, the root's is empty). Only the root may define macros.
    pub(crate) fn push(&mut self, folder: &[u8], bytes: &[u8]) {
        let mut source = folder.to_vec();
        source.extend_from_slice(b".gitattributes");
        self.add(
            bytes,
            PathBuf::from(OsStr::from_bytes(&source)),
            folder.is_empty(),
        );
    }

    /// Takes back the rules that were pushed last.
    pub(crate) fn pop(&mut self) {
        self.search.pop_pattern_list();
        self.fresh = false;
    }

    fn add(&mut self, bytes: &[u8], source: PathBuf, macros: bool) {
        let root = source.is_relative().then_some(Path::new(""));
        self.search
            .add_patterns_buffer(bytes, source, root, &mut self.names, macros)
            .expect("every byte string is a path on unix");
        self.fresh = false;
    }

    /// The traits of a file.
    pub(crate) fn of(&mut self, path: &[u8], settings: &Settings) -> Traits {
        if self.fresh {
            self.outcome.reset();
        } else {
            self.outcome.initialize_with_selection(&self.names, WANTED);
            self.fresh = true;
        }
        let file = Some(false);
        let case = self.case;
        self.strongest
            .pattern_matching_relative_path(path.into(), case, file, &mut self.outcome);
        if !self.outcome.is_done() {
            self.search
                .pattern_matching_relative_path(path.into(), case, file, &mut self.outcome);
        }
        let mut states = self
            .outcome
            .iter_selected()
            .map(|found| found.assignment.state);
        let mut next = || states.next().unwrap_or(StateRef::Unspecified);
        let (crlf, text, eol) = (next(), next(), next());
        let (ident, filter, encoding) = (next(), next(), next());
        Traits {
            digest: digest(crlf, text, eol, settings),
            ident: ident == StateRef::Set,
            filter: value(filter).map(str::to_owned),
            encoding: value(encoding).is_some_and(|name| {
                !name.eq_ignore_ascii_case("utf-8") && !name.eq_ignore_ascii_case("utf8")
            }),
        }
    }
}

fn value(state: StateRef<'_>) -> Option<&str> {
    match state {
        StateRef::Value(value) => std::str::from_utf8(value.as_bstr()).ok(),
        StateRef::Set | StateRef::Unset | StateRef::Unspecified => None,
    }
}

/// git's order: `crlf`, else `text`, narrowed by `eol`, else the configuration.
fn digest(
    crlf: StateRef<'_>,
    text: StateRef<'_>,
    eol: StateRef<'_>,
    settings: &Settings,
) -> AttributesDigest {
    let text = text_of(crlf).or_else(|| text_of(text));
    let eol = match value(eol) {
        Some("lf") => Some(Mode::Lf),
        Some("crlf") => Some(Mode::CrLf),
        _ => None,
    };
    match (text, eol) {
        (Some(AttributesDigest::Binary), _) => AttributesDigest::Binary,
        (Some(AttributesDigest::TextAuto), Some(Mode::Lf)) => AttributesDigest::TextAutoInput,
        (Some(AttributesDigest::TextAuto), Some(Mode::CrLf)) => AttributesDigest::TextAutoCrlf,
        (_, Some(mode)) => mode.into(),
        (Some(AttributesDigest::Text), None) => settings.eol.to_eol().into(),
        (Some(other), None) => other,
        (None, None) => settings.eol.auto_crlf.into(),
    }
}

fn text_of(state: StateRef<'_>) -> Option<AttributesDigest> {
    match state {
        StateRef::Set => Some(AttributesDigest::Text),
        StateRef::Unset => Some(AttributesDigest::Binary),
        StateRef::Value(_) => match value(state) {
            Some("input") => Some(AttributesDigest::TextInput),
            Some("auto") => Some(AttributesDigest::TextAuto),
            _ => None,
        },
        StateRef::Unspecified => None,
    }
}
