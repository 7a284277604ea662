//! One function, method or named lambda of a file, as plain values.

use std::ops::Range;

use super::Work;

/// A function, method or lambda with a name.
#[derive(Clone, Debug)]
pub(crate) struct Callable {
    /// Qualified name: `Class.method`, `outer.inner`.
    pub(crate) name: String,
    pub(crate) line: u32,
    pub(crate) end_line: u32,
    pub(crate) work: Work,
    pub(crate) context: Context,
    /// Tells apart definitions that share a name: the decorator's last part, such as `setter`.
    pub(crate) variant: String,
    /// Parameters besides `self` and `cls`.
    pub(crate) parameters: bool,
    pub(crate) doc: Option<(u32, String)>,
    /// Other strings in the body with their lines; left out when the body works.
    pub(crate) strings: Vec<(u32, String)>,
    /// Comments inside, as a range of the outline's comments.
    pub(crate) comments: Range<usize>,
    /// The source text, in bytes of the decoded file.
    pub(crate) span: Range<usize>,
    pub(crate) test: Option<TestFacts>,
}

impl Callable {
    /// Its own name without the path to it.
    pub(crate) fn own_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }

    /// `run (line 7, docstring only)`
    pub(crate) fn shown(&self) -> String {
        let what = match self.work {
            Work::Empty if self.doc.is_some() => "docstring only",
            Work::Empty => "empty",
            Work::Raises => "raises NotImplementedError",
            Work::Constant => "returns a constant",
            Work::Noise => "only prints, logs or sleeps",
            Work::Echo => "returns its own parameter",
            Work::Trivial => "loops over nothing",
            Work::Real => "works",
        };
        format!("{} (line {}, {what})", self.name, self.line)
    }
}

/// Whether a stub is what the place asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// A stub here is a stub.
    None,
    /// Dunder or nested: counts in the rules over the whole file.
    Small,
    /// Decorated, or a method of a class with bases: counts only in the widest rule.
    Weak,
    /// Abstract, protocol, overload, registered: an empty body is right.
    Strong,
}

/// What a test function checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts of one test"
)]
pub(crate) struct TestFacts {
    pub(crate) asserts: bool,
    /// An import that fails fails the test.
    pub(crate) imports: bool,
    pub(crate) exits_zero: bool,
    pub(crate) swallows: bool,
    pub(crate) skipped: bool,
}
