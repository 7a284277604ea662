//! What a document holds that this gate judges: text blocks, pictures, prose lines, section starts.
//! The readers of the single formats fill it; it must never hold an opinion of its own.

/// A document's parts, in the order in which they were read.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) blocks: Vec<Block>,
    pub(super) pictures: Vec<Picture>,
    pub(super) prose: Vec<Prose>,
    /// Lines at which a section starts, ascending.
    pub(super) sections: Vec<u32>,
    /// Where the document says its pictures are (`:imagesdir:`).
    pub(super) imagesdir: Option<String>,
}

/// A piece of text that could be a drawing.
#[derive(Debug)]
pub(super) struct Block {
    /// First line of the block, fence or directive included, from 1.
    pub(super) line: u32,
    pub(super) label: Label,
    pub(super) text: String,
}

/// What the document says about a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// Source of a drawing tool, with the tool's name as written.
    Source(Tool, String),
    /// A language, output or markup: not a drawing unless it is nothing but one.
    Code,
    /// A code block without a language, or one that calls itself text.
    Text,
    /// Running text outside any code block.
    Plain,
}

/// Families of drawing tools; each has its own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Mermaid,
    Plantuml,
    Graphviz,
    Other,
}

impl Tool {
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::Mermaid => "dia.mermaid",
            Self::Plantuml => "dia.plantuml",
            Self::Graphviz => "dia.graphviz",
            Self::Other => "dia.source",
        }
    }
}

/// A reference to a picture, or a picture in the text itself.
#[derive(Debug)]
pub(super) struct Picture {
    pub(super) line: u32,
    pub(super) form: Form,
}

/// How a picture stands in the document.
#[derive(Debug)]
pub(super) enum Form {
    /// Shown from this target, decoded from the markup's escapes.
    Shown(String),
    /// Shown from this target; the format looks it up in folders that the document does not name.
    Searched(String),
    /// Linked to, not shown.
    Linked(String),
    /// A reference without a definition.
    Undefined(String),
    /// `<svg>` in the document.
    Inline(super::svg::Ink, String),
    /// A picture in the notebook itself: bytes and name.
    Attached(Option<Vec<u8>>, String),
}

/// A line of running text.
#[derive(Debug)]
pub(super) struct Prose {
    pub(super) line: u32,
    pub(super) text: String,
}

/// Formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Markdown,
    Restructured,
    Asciidoc,
    Html,
    Notebook,
}

impl Format {
    /// By the file's ending, in any case.
    pub(super) fn of(path: &str) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "md" | "markdown" | "mdx" | "qmd" | "rmd" | "mkd" | "mdown" => Some(Self::Markdown),
            "rst" | "rest" => Some(Self::Restructured),
            "adoc" | "asciidoc" | "asc" => Some(Self::Asciidoc),
            "html" | "htm" | "xhtml" => Some(Self::Html),
            "ipynb" => Some(Self::Notebook),
            _ => None,
        }
    }
}

impl Document {
    /// Reads the text of a document.
    pub(super) fn read(format: Format, text: &str) -> Self {
        let mut document = Self::default();
        match format {
            Format::Markdown => super::markdown::read(text, &mut document),
            Format::Restructured => super::rst::read(text, &mut document),
            Format::Asciidoc => super::asciidoc::read(text, &mut document),
            Format::Html => super::html::read(text, super::html::Place::Page, &mut document),
            Format::Notebook => super::notebook::read(text, &mut document),
        }
        document.sections.sort_unstable();
        document.sections.dedup();
        document
    }

    pub(super) fn block(&mut self, line: u32, label: Label, text: String) {
        self.blocks.push(Block { line, label, text });
    }

    pub(super) fn picture(&mut self, line: u32, form: Form) {
        self.pictures.push(Picture { line, form });
    }

    pub(super) fn prose(&mut self, line: u32, text: &str) {
        if !text.trim().is_empty() {
            self.prose.push(Prose {
                line,
                text: text.to_owned(),
            });
        }
    }
}

/// Finds the line of a byte offset.
#[derive(Debug)]
pub(super) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self {
            starts: std::iter::once(0)
                .chain(ends.map(|(at, _)| at + 1))
                .collect(),
        }
    }

    /// Line of an offset, from 1.
    pub(super) fn at(&self, offset: usize) -> u32 {
        number(self.starts.partition_point(|start| *start <= offset))
    }

    /// Offset at which the line that holds `offset` starts.
    pub(super) fn start_of(&self, offset: usize) -> usize {
        let line = self.starts.partition_point(|start| *start <= offset);
        self.starts
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or(0)
    }
}

/// A count as a line number; documents are far smaller than the limit.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
