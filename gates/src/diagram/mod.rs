//! The diagram gate: a figure that a delivery adds is a real image in its tree.
//!
//! Documents are Markdown, reStructuredText, `AsciiDoc`, HTML and the Markdown cells of notebooks. A reader a format
//! ([`markdown`], [`rst`], [`asciidoc`], [`html`], [`notebook`]) turns a document into blocks, pictures and prose;
//! [`shape`] says what a block draws (by [`labels`], after [`lookalike`]s are blanked, by [`frames`] and [`flow`]);
//! [`images`] finds a picture in the tree and [`picture`] judges its bytes; [`honest`] knows the plain statement that
//! a figure is missing.
//!
//! Only what the delivery adds or changes counts. A document of the base is read the same way, and its figures are
//! taken off the new document's by content: a block by its code and its text without indentation, a picture by where
//! it leads and by the bytes there. So a moved or re-indented old figure is not held against a delivery, while an edited
//! one is, and so is an old reference to a picture that the delivery replaced or removed, in a document it touches.
//!
//! What it cannot see: figures in formats not named here, pictures that are real and show nothing useful, documents
//! that the delivery did not touch.

mod asciidoc;
mod claimed;
mod document;
mod flow;
mod frames;
mod gate;
mod grid;
mod honest;
#[cfg(test)]
mod hostile;
mod html;
mod images;
mod labels;
mod lookalike;
mod markdown;
mod notebook;
mod picture;
mod rst;
mod shape;
mod svg;
mod tags;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_pictures;
mod trace;

pub(crate) use gate::judge;
