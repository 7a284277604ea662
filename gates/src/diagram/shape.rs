//! What a text block is, judged by its shape: label first, then known look-alikes, then boxes, flows and graphs.

use super::document::{Block, Label, Tool};
use super::flow;
use super::frames::{self, Sight};
use super::grid::{self, Grid, TALLEST};
use super::{labels, lookalike};

/// A pseudo figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) code: &'static str,
    pub(super) refuses: bool,
    /// What it is, for people.
    pub(super) what: String,
}

impl Sighting {
    fn refused(code: &'static str, what: impl Into<String>) -> Self {
        Self {
            code,
            refuses: true,
            what: what.into(),
        }
    }

    fn noted(code: &'static str, what: impl Into<String>) -> Self {
        Self {
            code,
            refuses: false,
            what: what.into(),
        }
    }
}

/// What a block draws, if anything.
pub(super) fn look(block: &Block) -> Option<Sighting> {
    match &block.label {
        Label::Source(Tool::Other, name) if name == "flow" && !block.text.contains("=>") => None,
        Label::Source(tool, name) => Some(source(*tool, name)),
        Label::Code => drawing_in_disguise(&block.text),
        Label::Text => match labels::of_first_lines(&block.text) {
            Some((tool, name)) => Some(source(tool, &name)),
            None => pieces(&block.text, &in_code),
        },
        Label::Plain => pieces(&block.text, &in_running_text),
    }
}

fn source(tool: Tool, name: &str) -> Sighting {
    let kind = match tool {
        Tool::Mermaid => "Mermaid source",
        Tool::Plantuml => "PlantUML source",
        Tool::Graphviz => "Graphviz source",
        Tool::Other => "source of a drawing tool",
    };
    Sighting::refused(
        tool.code(),
        format!("{kind} (`{name}`) stands where a figure should be"),
    )
}

/// Long blocks are looked at in pieces; every column of East Asian text both as two cells and as one.
fn pieces(text: &str, judge: &dyn Fn(&Grid) -> Option<Sighting>) -> Option<Sighting> {
    if !text.contains(['-', '>', '|', '/']) && text.is_ascii() {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut noted = None;
    for piece in lines.chunks(TALLEST) {
        let wide = piece.iter().any(|line| line.chars().any(grid::is_wide));
        for as_wide in [true, false] {
            if !as_wide && !wide {
                continue;
            }
            let mut grid = Grid::of(piece, as_wide);
            lookalike::mask(&mut grid);
            match judge(&grid) {
                Some(sighting) if sighting.refuses => return Some(sighting),
                other => noted = noted.or(other),
            }
        }
    }
    noted
}

fn in_code(grid: &Grid) -> Option<Sighting> {
    let sight = frames::sight(grid);
    if let Some(found) = boxes(sight).or_else(|| attached_heads(grid)) {
        return Some(found);
    }
    if flow::is_flow(grid, false) {
        return Some(flowing());
    }
    if flow::is_graph(grid) {
        return Some(graph());
    }
    if let Sight::Maybe(_) = sight {
        return Some(Sighting::noted(
            "dia.ascii-maybe",
            "a frame drawn with characters",
        ));
    }
    bit_ruler(grid)
        .or_else(|| chart(grid))
        .or_else(|| chain(grid))
}

/// Outside a code block only what cannot be prose counts.
fn in_running_text(grid: &Grid) -> Option<Sighting> {
    let drawn = (0..grid.height()).any(|row| {
        grid.row(row)
            .iter()
            .any(|c| grid::is_bar(*c) || grid::is_box(*c) || grid::is_head_down(*c))
    });
    if !drawn {
        return None;
    }
    if let Some(found) = boxes(frames::sight(grid)) {
        return Some(found);
    }
    flow::is_flow(grid, true).then(flowing)
}

/// A block labelled as a language that holds nothing but a drawing.
fn drawing_in_disguise(text: &str) -> Option<Sighting> {
    if !text.contains(['+', '|']) && !text.chars().any(grid::is_box) {
        return None;
    }
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let drawn = lines.iter().filter(|line| is_drawn(line)).count();
    let code = lines
        .iter()
        .any(|line| flow::looks_like_code(line) || line.contains(['"', '(']));
    if lines.len() < 3 || code || drawn * 10 < lines.len() * 9 {
        return None;
    }
    pieces(text, &|grid| boxes(frames::sight(grid)))
}

fn is_drawn(line: &str) -> bool {
    let line = line.trim();
    let edge = |c: char| grid::is_bar(c) || grid::is_box(c) || c == '+';
    let both = line.starts_with(edge) && line.ends_with(edge) && line.chars().count() > 1;
    both || line
        .chars()
        .all(|c| edge(c) || grid::is_dash(c) || grid::is_head(c) || c.is_whitespace() || c == 'v')
}

fn boxes(sight: Sight) -> Option<Sighting> {
    match sight {
        Sight::Boxes(1) => Some(Sighting::refused(
            "dia.ascii-box",
            "a box with a connector, drawn with characters",
        )),
        Sight::Boxes(count) => Some(Sighting::refused(
            "dia.ascii-box",
            format!("{count} boxes drawn with characters"),
        )),
        Sight::Maybe(_) | Sight::Nothing => None,
    }
}

fn flowing() -> Sighting {
    Sighting::refused("dia.ascii-flow", "a flow of arrows drawn with characters")
}

fn graph() -> Sighting {
    Sighting::refused(
        "dia.ascii-graph",
        "a graph of nodes and slashes drawn with characters",
    )
}

/// Box characters that end in arrow heads, on two rows or around a corner.
fn attached_heads(grid: &Grid) -> Option<Sighting> {
    let (mut sideways, mut upright, mut corners) = (0, 0, 0);
    for row in 0..grid.height() {
        let mut here = false;
        for (column, &c) in grid.row(row).iter().enumerate() {
            let before = column.checked_sub(1).map_or(' ', |at| grid.at(row, at));
            let after = grid.at(row, column + 1);
            let stroke = |c: char| grid::is_dash(c) && grid::is_box(c);
            let upper = row.checked_sub(1).map_or(' ', |at| grid.at(at, column));
            here = here
                || (grid::is_head_right(c) && stroke(before))
                || (grid::is_head_left(c) && stroke(after));
            let down = (grid::is_head_down(c)
                || matches!(c, 'v' | 'V') && after == ' ' && before == ' ')
                && grid::is_box(upper);
            let up = grid::is_head_up(c) && grid::is_box(grid.at(row + 1, column));
            upright += usize::from(down || up);
            corners += usize::from(grid::is_box(c) && !grid::is_bar(c) && !grid::is_dash(c));
        }
        sideways += usize::from(here);
    }
    let drawn = sideways + upright >= 2 && (upright > 0 || corners > 0)
        || (upright > 0 && corners > 0)
        || (sideways > 0 && corners > 1);
    drawn.then(|| Sighting::refused("dia.ascii-box", "arrows drawn with box characters"))
}

/// `+-+-+-+-+`: the ruler of a packet layout.
fn bit_ruler(grid: &Grid) -> Option<Sighting> {
    let ruler = |row: usize| grid.text(row).trim().starts_with("+-+-+-+-+-+-+-+");
    (0..grid.height()).any(ruler).then(|| {
        Sighting::noted(
            "dia.ascii-maybe",
            "a layout of fields drawn with characters",
        )
    })
}

/// Bars of blocks with names and different lengths.
fn chart(grid: &Grid) -> Option<Sighting> {
    let mut lengths: Vec<usize> = Vec::new();
    let mut inked = 0;
    for row in 0..grid.height() {
        let text = grid.text(row);
        if let Some((length, solid)) = bar(&text) {
            lengths.push(length);
            inked += usize::from(solid);
        }
    }
    let least = if inked > 0 { 2 } else { 3 };
    let longest = lengths.iter().max().copied().unwrap_or(0);
    let rows = lengths.len();
    lengths.sort_unstable();
    lengths.dedup();
    (rows >= least && lengths.len() > 1 && longest >= 3)
        .then(|| Sighting::noted("dia.ascii-chart", "a bar chart drawn with characters"))
}

/// `name ████ 70%`: the bar's length, and whether it is of solid blocks.
fn bar(text: &str) -> Option<(usize, bool)> {
    let is_block = |c: char| matches!(c, '\u{2580}'..='\u{2590}' | '\u{2593}' | '■' | '▪' | '●');
    // A bar inside brackets or bars shows progress.
    let meter = text.contains(['[', ']']) || text.matches('|').count() > 1;
    if meter {
        return None;
    }
    let mut words = text.split_whitespace();
    let name = words.next()?;
    if !name.chars().any(char::is_alphanumeric) {
        return None;
    }
    let bar = words.find(|word| {
        word.chars()
            .all(|c| is_block(c) || matches!(c, '|' | '#' | '*' | '░' | '▒'))
    })?;
    let length = bar.chars().filter(|c| *c != '|').count();
    let solid = bar.chars().any(is_block);
    let value = words
        .next()
        .is_none_or(|word| word.chars().any(|c| c.is_ascii_digit()));
    let one_mark = bar
        .trim_start_matches('|')
        .chars()
        .all(|c| bar.ends_with(c) || solid);
    (value && length >= 1 && (solid || one_mark)).then_some((length, solid))
}

/// One line `a -> b -> c`: also how people write types and series, so it is only noted.
fn chain(grid: &Grid) -> Option<Sighting> {
    (0..grid.height())
        .any(|row| is_chain(&grid.text(row)))
        .then(|| Sighting::noted("dia.ascii-chain", "a chain of arrows on one line"))
}

fn is_chain(text: &str) -> bool {
    let text = text.trim();
    if flow::looks_like_code(text) || text.chars().count() > 240 {
        return false;
    }
    let mut plain = text
        .replace("──", "─")
        .replace("─▶", "→")
        .replace("─►", "→")
        .replace("─>", "→");
    for long in ["----", "---", "--"] {
        plain = plain.replace(&format!("{long}>"), "->");
    }
    let plain = plain.replace("->", "→").replace(['⟶', '➜', '➔', '▶'], "→");
    let nodes: Vec<&str> = plain.split('→').map(str::trim).collect();
    let named = |node: &&str| {
        let letters = node.chars().filter(|c| c.is_alphabetic()).count();
        let wide = node.chars().any(grid::is_wide);
        (letters > 1 || wide || node.chars().count() == 1 && letters == 1)
            && node.chars().count() <= 48
    };
    let typed = text.contains(" : ")
        || text.starts_with("val ")
        || text.starts_with("type ")
        || text.contains('`')
        || text.contains("(a")
        || text.contains("):");
    nodes.len() >= 3 && nodes.iter().all(named) && !typed
}
