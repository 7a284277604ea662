//! Judges the documents of a delivery: reads each beside its base version and turns what is new into reasons.

use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};

use super::document::{Document, Form, Format, Label, Picture, Tool};
use super::images::{Target, Tree};
use super::picture::{self, Fault};
use super::shape::{self, Sighting};
use super::{claimed, honest, images};
use crate::{Change, ChangeKind, Delivery, DiagramMode, Gate, GateRun, Level, Reason, Source};

/// Reasons of one document beyond this are counted, not listed.
const MOST_REASONS: usize = 40;

const DRAW: &str = "add the figure as a picture file (PNG, SVG, …) and reference it, or say plainly before it that the figure is missing, \
                    for example with `<!-- figure-missing: why -->`";

/// The diagram gate.
pub(crate) fn judge(delivery: &Delivery, source: &mut dyn Source) -> GateRun {
    if delivery.profile.diagram == DiagramMode::Off {
        return GateRun::not_applicable(
            Gate::Diagram,
            "switched off: `[gates.diagram] mode = \"off\"`",
        );
    }
    let documents: Vec<(&Change, Format)> = delivery.changes.iter().filter_map(judged).collect();
    if documents.is_empty() {
        return GateRun::not_applicable(Gate::Diagram, "no document was added or changed");
    }
    let mut bench = Bench {
        delivery,
        source,
        tree: None,
        known: HashMap::new(),
        changed: delivery
            .changes
            .iter()
            .filter(|change| change.kind != ChangeKind::Mode)
            .map(|change| change.path.as_str())
            .collect(),
    };
    let reasons = documents
        .into_iter()
        .flat_map(|(change, format)| bench.document(change, format))
        .collect();
    GateRun::of(Gate::Diagram, reasons)
}

/// Documents whose text or place is new.
fn judged(change: &Change) -> Option<(&Change, Format)> {
    let new = change.new.as_ref()?;
    let wanted = new.is_file() && !matches!(change.kind, ChangeKind::Deleted | ChangeKind::Mode);
    Format::of(&change.path)
        .filter(|_| wanted)
        .map(|format| (change, format))
}

/// What the documents of one delivery share.
struct Bench<'a> {
    delivery: &'a Delivery,
    source: &'a mut dyn Source,
    tree: Option<Tree>,
    /// Verdicts by object and ending: many documents show the same picture.
    known: HashMap<String, Option<Fault>>,
    changed: HashSet<&'a str>,
}

/// Figures of the base by content, with how often each is there.
#[derive(Default)]
struct Before {
    figures: HashMap<[u8; 32], usize>,
    prose: HashSet<String>,
}

impl Before {
    /// Whether the base has this figure; each of its figures excuses one.
    fn has(&mut self, key: &[u8; 32]) -> bool {
        match self.figures.get_mut(key) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}

impl Bench<'_> {
    fn document(&mut self, change: &Change, format: Format) -> Vec<Reason> {
        let path = &change.path;
        if let Some(skip) = self.delivery.profile.skip_of(path) {
            let why = format!("not judged: `{}` is skipped by {}", skip.glob, skip.set_by);
            return vec![Reason::info("dia.skipped", why).at(path)];
        }
        let text = match self.text(
            change
                .new
                .as_ref()
                .map(|blob| (blob.oid.as_str(), blob.bytes)),
        ) {
            Ok(text) => text,
            Err(why) => return vec![Reason::unchecked("dia.unreadable", why).at(path)],
        };
        let document = Document::read(format, &text);
        let mut before = self.before(change);
        let mut found = self.blocks(path, &document, &mut before);
        found.extend(self.pictures(path, &document, &mut before));
        found.extend(unseen_figure(path, &document, &before));
        if format == Format::Notebook {
            for reason in &mut found {
                // Lines of cells are not lines of the file.
                let line = reason.line.take().unwrap_or(1);
                reason.message = format!("line {line} of the Markdown cells: {}", reason.message);
            }
        }
        found.sort_by(|a, b| a.line.cmp(&b.line).then(b.level.cmp(&a.level)));
        shortened(found, path)
    }

    fn text(&mut self, blob: Option<(&str, u64)>) -> Result<String, String> {
        let (oid, bytes) = blob.ok_or_else(|| "the document has no content".to_owned())?;
        let most = self.delivery.profile.max_file_bytes;
        if bytes > most {
            return Err(format!(
                "the document has {bytes} bytes; more than {most} are not read"
            ));
        }
        let content = self
            .source
            .blob(oid)
            .ok_or_else(|| "the document's content cannot be had".to_owned())?;
        // Looks at the byte-order mark, replaces what is not text.
        let (text, _, _) = encoding_rs::UTF_8.decode(&content);
        Ok(text.into_owned())
    }

    fn before(&mut self, change: &Change) -> Before {
        let mut before = Before::default();
        let path = change.from.as_ref().unwrap_or(&change.path);
        let blob = change
            .old
            .as_ref()
            .filter(|blob| blob.is_file())
            .map(|blob| (blob.oid.as_str(), blob.bytes));
        let (Some(format), Ok(text)) = (Format::of(path), self.text(blob)) else {
            return before;
        };
        let document = Document::read(format, &text);
        for block in &document.blocks {
            if let Some(sighting) = shape::look(block) {
                *before
                    .figures
                    .entry(block_key(&sighting, &block.text))
                    .or_default() += 1;
            }
        }
        for picture in &document.pictures {
            let (key, _) = self.place(path, picture, document.imagesdir.as_deref());
            *before.figures.entry(key).or_default() += 1;
        }
        before.prose = document.prose.into_iter().map(|prose| prose.text).collect();
        before
    }

    fn blocks(&self, path: &str, document: &Document, before: &mut Before) -> Vec<Reason> {
        let lint = self.delivery.profile.diagram == DiagramMode::Lint;
        let statements = honest::statements(document);
        let mut reasons = Vec::new();
        let mut taken: Vec<(u32, u32)> = Vec::new();
        let mut unchecked: Option<(u32, usize)> = None;
        // Blocks with a label first: running text is looked at only where no other block stands.
        let plain_last = |plain: bool| {
            document
                .blocks
                .iter()
                .filter(move |block| (block.label == Label::Plain) == plain)
        };
        for block in plain_last(false).chain(plain_last(true)) {
            let span = (
                block.line,
                block.line + super::document::number(block.text.lines().count()),
            );
            if block.label == Label::Plain
                && taken
                    .iter()
                    .any(|(from, to)| span.0 <= *to && *from <= span.1)
            {
                continue;
            }
            let Some(sighting) = shape::look(block) else {
                continue;
            };
            taken.push(span);
            if before.has(&block_key(&sighting, &block.text)) {
                continue;
            }
            if lint && sighting.code == Tool::Mermaid.code() {
                let (first, count) = unchecked.unwrap_or((block.line, 0));
                unchecked = Some((first, count + 1));
                continue;
            }
            let excused = honest::covers(&statements, &document.sections, block.line);
            reasons.push(reason_for(&sighting, excused).at(path).line(block.line));
        }
        if let Some((line, count)) = unchecked {
            let what = format!(
                "{count} Mermaid figure(s): allowed by `mode = \"lint\"`, their syntax is not checked"
            );
            reasons.push(Reason::info("dia.not-checked", what).at(path).line(line));
        }
        reasons
    }

    fn pictures(&mut self, path: &str, document: &Document, before: &mut Before) -> Vec<Reason> {
        let mut reasons = Vec::new();
        for picture in &document.pictures {
            let (key, place) = self.place(path, picture, document.imagesdir.as_deref());
            if before.has(&key) && !self.touched(path, picture, place.as_ref()) {
                continue;
            }
            if let Some(fault) = self.fault(picture, place) {
                let level = if fault.refuses {
                    Level::Fail
                } else {
                    Level::Warn
                };
                let reason = Reason::new(level, fault.code, fault.message)
                    .at(path)
                    .line(picture.line);
                reasons.push(reason.help(help_for(fault.code)));
            }
        }
        reasons
    }

    /// Where a picture leads, and a key that is equal for equal figures.
    fn place(
        &mut self,
        path: &str,
        picture: &Picture,
        imagesdir: Option<&str>,
    ) -> ([u8; 32], Option<Target>) {
        let (target, searched) = match &picture.form {
            Form::Shown(target) => (target, false),
            Form::Searched(target) => (target, true),
            Form::Linked(target) if images::has_picture_ending(target) => (target, false),
            Form::Linked(target) => return (key("link", target), None),
            Form::Undefined(name) => return (key("undefined", name), None),
            Form::Inline(_, source) => return (key("inline", source), None),
            Form::Attached(bytes, name) => {
                return (
                    key(name, &format!("{:?}", bytes.as_ref().map(Vec::len))),
                    None,
                );
            }
        };
        let tree = self.tree.get_or_insert_with(|| Tree::of(self.source));
        let place = tree.resolve(path, target, searched, imagesdir);
        let name = if let Target::File { path, .. } = &place {
            path
        } else {
            target
        };
        let kind = if matches!(picture.form, Form::Linked(_)) {
            "linked"
        } else {
            "shown"
        };
        (key(kind, name), Some(place))
    }

    /// Whether the delivery changed what an old reference shows.
    fn touched(&self, path: &str, picture: &Picture, place: Option<&Target>) -> bool {
        match (place, &picture.form) {
            (Some(Target::File { path, .. }), _) => self.changed.contains(path.as_str()),
            (
                Some(Target::Missing | Target::OtherCase(_)),
                Form::Shown(target) | Form::Searched(target),
            ) => images::written_path(path, target)
                .is_some_and(|path| self.changed.contains(path.as_str())),
            _ => false,
        }
    }

    fn fault(&mut self, picture: &Picture, place: Option<Target>) -> Option<Fault> {
        match (&picture.form, place) {
            (Form::Linked(target), Some(Target::Missing | Target::OtherCase(_))) => {
                Some(Fault::noted(
                    "img.link",
                    format!(
                        "a link to the picture `{}`, which is not in the delivered tree",
                        short(target)
                    ),
                ))
            }
            (Form::Undefined(name), _) => Some(Fault::refused(
                "img.undefined",
                format!(
                    "the picture's reference `[{}]` has no definition",
                    short(name)
                ),
            )),
            (Form::Inline(ink, _), _) => picture::worth_fault(ink.worth()),
            (Form::Attached(Some(bytes), name), _) => picture::judge(name, bytes),
            (Form::Attached(None, name), _) => Some(Fault::refused(
                "img.missing",
                format!("the attachment `{}` is not in its cell", short(name)),
            )),
            (Form::Shown(_) | Form::Searched(_), Some(Target::File { path, oid })) => {
                self.file_fault(&path, &oid)
            }
            (Form::Shown(_) | Form::Searched(_), Some(Target::Data(target))) => {
                picture::judge_data(&target)
            }
            (Form::Shown(target) | Form::Searched(target), Some(place)) => {
                picture::place_fault(target, &place)
            }
            (Form::Linked(_), _) | (Form::Shown(_) | Form::Searched(_), None) => None,
        }
    }

    fn file_fault(&mut self, path: &str, oid: &str) -> Option<Fault> {
        let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
        let name = format!("{oid}.{ending}");
        if let Some(known) = self.known.get(&name) {
            return known.clone();
        }
        let fault = match self.source.blob(oid) {
            Some(bytes) => picture::judge(path, &bytes),
            None => Some(Fault::refused("img.missing", "its content cannot be had")),
        };
        let fault = fault.map(|mut fault| {
            fault.message = format!("`{}`: {}", short(path), fault.message);
            fault
        });
        self.known.insert(name, fault.clone());
        fault
    }
}

fn short(text: &str) -> String {
    text.chars().take(120).collect()
}

fn key(kind: &str, text: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(kind.as_bytes());
    hash.update([0]);
    hash.update(text.as_bytes());
    hash.finalize().into()
}

/// By code and by text; common indentation and white space at line ends do not count.
fn block_key(sighting: &Sighting, text: &str) -> [u8; 32] {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let indent = lines
        .iter()
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let bare: Vec<&str> = lines
        .iter()
        .map(|line| line.get(indent..).unwrap_or(line))
        .collect();
    key(sighting.code, &bare.join("\n"))
}

fn reason_for(sighting: &Sighting, excused: bool) -> Reason {
    if excused {
        let what = format!(
            "{}; the document says plainly that the figure is missing ({})",
            sighting.what, sighting.code
        );
        return Reason::warn("dia.honest", what);
    }
    let level = if sighting.refuses {
        Level::Fail
    } else {
        Level::Warn
    };
    let reason = Reason::new(level, sighting.code, sighting.what.clone());
    match (sighting.code, sighting.refuses) {
        ("dia.mermaid", _) => reason.help(format!(
            "{DRAW}. If readers of this repository see Mermaid rendered, its owner can allow it: \
             put `[gates.diagram]` and, below it, `mode = \"lint\"` into airlock.toml on the target branch"
        )),
        (_, true) => reason.help(DRAW),
        (_, false) => reason.help("if this is meant as a figure, add it as a picture file"),
    }
}

fn help_for(code: &str) -> &'static str {
    match code {
        "img.missing" => {
            "add the picture file to the delivery, or mend the path; it is read relative to the document"
        }
        "img.case" => "write the path exactly as the file is named",
        "img.escape" | "img.local" => {
            "put the picture into the repository and reference it by a relative path"
        }
        "img.undefined" => "add the definition `[name]: path` for the reference",
        "img.empty" | "img.magic" | "img.truncated" => {
            "replace the file by a real picture: write it again and open it once"
        }
        "img.tiny" | "img.blank" | "img.svg-text" | "img.svg-empty" => {
            "draw the figure: a placeholder is no figure"
        }
        "img.remote" => "consider adding the picture to the repository",
        "img.ext" => "name the file after what it holds",
        "img.link" => "add the picture or drop the link",
        _ => "",
    }
}

/// A document that talks about a figure and has none.
fn unseen_figure(path: &str, document: &Document, before: &Before) -> Option<Reason> {
    let shown = document
        .pictures
        .iter()
        .any(|picture| !matches!(picture.form, Form::Linked(_)));
    if shown
        || document
            .blocks
            .iter()
            .any(|block| shape::look(block).is_some())
    {
        return None;
    }
    if !honest::statements(document).is_empty() {
        return None;
    }
    let mut new = document
        .prose
        .iter()
        .filter(|prose| !before.prose.contains(&prose.text));
    let found = new.find(|prose| claimed::points_at_figure(&prose.text))?;
    let reason = Reason::warn(
        "img.claimed",
        "the text points at a figure, and the document holds none",
    );
    Some(
        reason
            .at(path)
            .line(found.line)
            .help("add the figure, or say plainly that it is missing"),
    )
}

fn shortened(mut reasons: Vec<Reason>, path: &str) -> Vec<Reason> {
    if reasons.len() > MOST_REASONS {
        // The heaviest stay, in their order.
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.level));
        let rest = reasons.split_off(MOST_REASONS);
        let level = rest
            .iter()
            .map(|reason| reason.level)
            .max()
            .unwrap_or(Level::Info);
        reasons.sort_by_key(|reason| reason.line);
        let code = rest
            .first()
            .map_or("dia.more", |reason| reason.code.as_str())
            .to_owned();
        reasons.push(
            Reason::new(
                level,
                &code,
                format!("and {} more in this document", rest.len()),
            )
            .at(path),
        );
    }
    reasons
}
