//! Whether an SVG draws anything: counts what leaves ink, in a file or inside a page.
//! It must never render, fetch or expand anything.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

/// What was found so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Ink {
    shapes: usize,
    /// Rectangles that cover the whole canvas.
    backgrounds: usize,
    texts: usize,
    used: usize,
    defined: usize,
    canvas: Option<(f64, f64)>,
    /// Names of open elements that draw nothing by themselves.
    hidden: Vec<String>,
    invisible: bool,
}

/// What an SVG is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    Drawing,
    /// Words only, or words on one background rectangle.
    TextOnly,
    /// Nothing, or one background rectangle.
    Empty,
    /// A store of symbols, or meant to be invisible: no figure.
    NoFigure,
}

/// Element names deeper than this are not followed.
const DEEPEST: usize = 512;

impl Ink {
    /// An element starts; `attribute` gives its attributes.
    pub(super) fn open(&mut self, name: &str, attribute: &dyn Fn(&str) -> Option<String>) {
        if !self.hidden.is_empty() {
            if self.hidden.len() < DEEPEST {
                self.hidden.push(name.to_owned());
            }
            self.defined += usize::from(is_shape(name));
            return;
        }
        let hides = matches!(
            name,
            "defs"
                | "symbol"
                | "clippath"
                | "clipPath"
                | "mask"
                | "pattern"
                | "marker"
                | "metadata"
        );
        let unseen = not_shown(attribute);
        if name == "svg" && self.canvas.is_none() {
            self.canvas = canvas(attribute);
            self.invisible = unseen;
            return;
        }
        if hides || unseen {
            self.hidden.push(name.to_owned());
            return;
        }
        match name {
            "rect" if self.covers(attribute) => self.backgrounds += 1,
            "path" if attribute("d").is_some_and(|d| d.trim().len() < 4) => {}
            "use" => self.used += 1,
            "text" | "tspan" | "textPath" | "foreignObject" | "foreignobject" => self.texts += 1,
            _ => self.shapes += usize::from(is_shape(name)),
        }
    }

    /// An element ends.
    pub(super) fn close(&mut self, name: &str) {
        if self.hidden.last().is_some_and(|open| open == name) {
            self.hidden.pop();
        }
    }

    /// The picture is not meant to be seen.
    pub(super) fn hide(&mut self) {
        self.invisible = true;
    }

    /// The judgement over all elements.
    pub(super) fn worth(&self) -> Worth {
        if self.invisible {
            Worth::NoFigure
        } else if self.shapes > 0 || self.used > 0 || self.backgrounds > 1 {
            Worth::Drawing
        } else if self.texts > 0 {
            Worth::TextOnly
        } else if self.defined > 0 && self.backgrounds == 0 {
            Worth::NoFigure
        } else {
            Worth::Empty
        }
    }

    fn covers(&self, attribute: &dyn Fn(&str) -> Option<String>) -> bool {
        let size = |name: &str, whole: Option<f64>| {
            let value = attribute(name);
            match value.as_deref().map(str::trim) {
                None => false,
                Some(text) if text.ends_with('%') => length(text).is_some_and(|part| part >= 90.0),
                Some(text) => match (length(text), whole) {
                    (Some(length), Some(whole)) => length >= whole * 0.9,
                    // Without a canvas to compare with, a lone rectangle is taken for the background.
                    _ => true,
                },
            }
        };
        size("width", self.canvas.map(|(width, _)| width))
            && size("height", self.canvas.map(|(_, height)| height))
    }
}

fn is_shape(name: &str) -> bool {
    matches!(
        name,
        "path" | "rect" | "circle" | "ellipse" | "line" | "polyline" | "polygon" | "image"
    )
}

fn not_shown(attribute: &dyn Fn(&str) -> Option<String>) -> bool {
    let style = attribute("style").unwrap_or_default().replace(' ', "");
    attribute("display").as_deref() == Some("none")
        || attribute("visibility").as_deref() == Some("hidden")
        || attribute("opacity").as_deref() == Some("0")
        || attribute("aria-hidden").as_deref() == Some("true")
            && attribute("width").as_deref() == Some("0")
        || style.contains("display:none")
        || style.contains("visibility:hidden")
}

fn length(text: &str) -> Option<f64> {
    let number: String = text
        .trim()
        .chars()
        .take_while(|c| c.is_ascii_digit() || matches!(c, '.' | '-'))
        .collect();
    number.parse().ok()
}

fn canvas(attribute: &dyn Fn(&str) -> Option<String>) -> Option<(f64, f64)> {
    if let Some(view) = attribute("viewBox").or_else(|| attribute("viewbox")) {
        let parts: Vec<f64> = view
            .split(|c: char| c.is_whitespace() || c == ',')
            .filter(|part| !part.is_empty())
            .filter_map(|part| part.parse().ok())
            .collect();
        if let [_, _, width, height] = parts.as_slice() {
            return Some((*width, *height));
        }
    }
    let width = attribute("width").filter(|text| !text.ends_with('%'))?;
    let height = attribute("height").filter(|text| !text.ends_with('%'))?;
    Some((length(&width)?, length(&height)?))
}

/// Reads an SVG file. `Err` says why it is no SVG.
pub(super) fn judge(text: &str) -> Result<Worth, String> {
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut ink = Ink::default();
    let (mut depth, mut roots, mut declares) = (0_usize, 0_usize, false);
    loop {
        match reader.read_event() {
            Ok(Event::Start(element)) => {
                enter(&element, depth, &mut roots, &mut ink)?;
                depth += 1;
            }
            Ok(Event::Empty(element)) => {
                enter(&element, depth, &mut roots, &mut ink)?;
                ink.close(local(&element));
            }
            Ok(Event::End(element)) => {
                depth = depth.saturating_sub(1);
                ink.close(element.local_name().into_inner());
            }
            Ok(Event::DocType(content)) => declares = content.into_inner().contains("<!ENTITY"),
            Ok(Event::GeneralRef(name)) => {
                let name = name.into_inner();
                let known = name.starts_with('#')
                    || matches!(name.as_ref(), "amp" | "lt" | "gt" | "quot" | "apos");
                if !known && !declares {
                    return Err(format!("it uses `&{name};`, which XML does not know"));
                }
            }
            Ok(Event::Text(content)) => {
                if depth == 0 && !content.into_inner().trim().is_empty() {
                    return Err("there is text outside the root element".to_owned());
                }
            }
            Ok(Event::Eof) => break,
            Ok(Event::CData(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_)) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    if depth > 0 {
        return Err("an element is not closed".to_owned());
    }
    if roots == 0 {
        return Err("it holds no element".to_owned());
    }
    Ok(ink.worth())
}

fn local<'e>(element: &'e BytesStart<'_>) -> &'e str {
    element.local_name().into_inner()
}

fn enter(
    element: &BytesStart<'_>,
    depth: usize,
    roots: &mut usize,
    ink: &mut Ink,
) -> Result<(), String> {
    let name = local(element);
    if depth == 0 {
        *roots += 1;
        if *roots > 1 {
            return Err("there is more than one root element".to_owned());
        }
        if name != "svg" {
            return Err(format!("its root element is `{name}`, not `svg`"));
        }
    }
    if let Some(error) = element.attributes().find_map(Result::err) {
        return Err(error.to_string());
    }
    ink.open(name, &|wanted| {
        let attributes = element.attributes().filter_map(Result::ok);
        let mut found =
            attributes.filter(|attribute| attribute.key.local_name().into_inner() == wanted);
        found.next().map(|attribute| attribute.value.into_owned())
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_draws_and_what_does_not() {
        let cases = [
            (
                "<svg viewBox='0 0 10 10'><rect width='10' height='10'/><circle r='2'/></svg>",
                Worth::Drawing,
            ),
            (
                "<svg viewBox='0 0 10 10'><rect width='4' height='4'/></svg>",
                Worth::Drawing,
            ),
            (
                "<svg width='10' height='10'><rect width='100%' height='100%'/><text>Figure</text></svg>",
                Worth::TextOnly,
            ),
            ("<svg><rect width='9' height='9'/></svg>", Worth::Empty),
            ("<svg/>", Worth::Empty),
            (
                "<svg><defs><path d='M0 0L9 9'/></defs></svg>",
                Worth::NoFigure,
            ),
            (
                "<svg><defs><path id='a' d='M0 0L9 9'/></defs><use href='#a'/></svg>",
                Worth::Drawing,
            ),
            (
                "<svg viewBox='0 0 9 9'><g display='none'><path d='M0 0L9 9'/></g><text>x</text></svg>",
                Worth::TextOnly,
            ),
            (
                "<?xml version='1.0'?><!-- c --><svg:svg xmlns:svg='http://www.w3.org/2000/svg'><svg:line x1='1'/></svg:svg>",
                Worth::Drawing,
            ),
        ];
        for (text, worth) in cases {
            assert_eq!(judge(text), Ok(worth), "{text}");
        }
        for text in [
            "",
            "<svg>",
            "<html/>",
            "<svg></g></svg>",
            "<svg/><svg/>",
            "<svg>&nbsp;</svg>",
            "plain text",
            "<svg a='1' a='2'/>",
        ] {
            assert!(judge(text).is_err(), "{text}");
        }
    }
}
