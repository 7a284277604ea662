//! Finds closed rectangles, traced corner to corner, and says how they stand to one another.
//! Work is bounded by a budget in proportion to the grid, whatever it holds.

use std::collections::BTreeMap;

use super::grid::{self, Grid};

/// A closed rectangle; corners included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) top: usize,
    pub(super) left: usize,
    pub(super) bottom: usize,
    pub(super) right: usize,
    /// Words stand in the top edge, as in the panels of terminal programs.
    titled: bool,
}

/// Frames that share edges.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    pub(super) frames: Vec<Frame>,
    pub(super) hull: Frame,
    pub(super) connected: bool,
}

/// How a panel's cells are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Single,
    /// Rows and columns that line up.
    Table,
    /// One row or one column, or cells of many sizes.
    Patchwork,
}

/// What the frames of a block amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    Nothing,
    /// Frames, but perhaps a terminal panel or a layout of fields.
    Maybe(usize),
    /// Boxes apart, nested, or joined: how many.
    Boxes(usize),
}

/// More frames than this are not told apart any better.
const MOST: usize = 400;

/// Looks at all frames of a grid.
pub(super) fn sight(grid: &Grid) -> Sight {
    let frames = trace(grid);
    if frames.is_empty() {
        return Sight::Nothing;
    }
    let mut panels = panels(grid, &frames);
    panels.retain(|panel| !is_open_table(grid, &panel.hull));
    let drawn: Vec<&Panel> = panels
        .iter()
        .filter(|panel| panel.connected || panel.layout() != Layout::Table)
        .collect();
    let count = drawn.iter().map(|panel| panel.frames.len()).sum();
    if drawn.iter().any(|panel| panel.connected) {
        return Sight::Boxes(count);
    }
    if drawn.len() > 1 {
        return if stacked_panels(&drawn) || nested_tables(&panels) {
            Sight::Maybe(count)
        } else {
            Sight::Boxes(count)
        };
    }
    if count > 0 {
        Sight::Maybe(count)
    } else {
        Sight::Nothing
    }
}

/// Terminal panels: one above the other, equally wide, wide or titled.
fn stacked_panels(panels: &[&Panel]) -> bool {
    let mut rest = panels.iter();
    let Some(first) = rest.next() else {
        return false;
    };
    let same = rest.all(|panel| {
        panel.hull.left == first.hull.left && panel.hull.right.abs_diff(first.hull.right) <= 2
    });
    let wide = first.hull.right - first.hull.left >= 40;
    same && (wide || panels.iter().all(|panel| panel.hull.titled))
}

/// A frame around tables only is a panel that shows tables.
fn nested_tables(panels: &[Panel]) -> bool {
    let outer = panels
        .iter()
        .filter(|panel| panel.layout() != Layout::Table);
    panels.len() > 1 && outer.count() == 1
}

impl Panel {
    fn layout(&self) -> Layout {
        if self.frames.len() == 1 {
            return Layout::Single;
        }
        let area = |frame: &Frame| (frame.right - frame.left) * (frame.bottom - frame.top);
        let tiled: usize = self.frames.iter().map(area).sum();
        let mut columns: Vec<(usize, usize)> = self
            .frames
            .iter()
            .map(|frame| (frame.left, frame.right))
            .collect();
        let mut rows: Vec<(usize, usize)> = self
            .frames
            .iter()
            .map(|frame| (frame.top, frame.bottom))
            .collect();
        for sides in [&mut columns, &mut rows] {
            sides.sort_unstable();
            sides.dedup();
        }
        let regular = columns.len() * rows.len() == self.frames.len();
        let filled = tiled * 10 >= area(&self.hull) * 9;
        if filled && regular && columns.len() > 1 && rows.len() > 1 {
            Layout::Table
        } else {
            Layout::Patchwork
        }
    }
}

/// Steps left; when none are, tracing stops with what it has.
struct Budget(usize);

impl Budget {
    fn spend(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

fn trace(grid: &Grid) -> Vec<Frame> {
    let mut budget = Budget(20_000 + grid.cells() * 48);
    let mut frames = Vec::new();
    for top in 0..grid.height() {
        let row = grid.row(top);
        for left in 0..row.len() {
            if frames.len() >= MOST {
                return frames;
            }
            let starts =
                is_top_left(grid.at(top, left)) && grid::is_horizontal(grid.at(top, left + 1));
            if starts {
                frames.extend(close(grid, top, left, &mut budget));
            } else if grid.at(top, left) == '_' && left > 0 && grid.at(top, left - 1) != '_' {
                frames.extend(close_underlined(grid, top, left, &mut budget));
            }
        }
    }
    frames.retain(|frame| holds_text(grid, frame));
    frames
}

fn is_top_left(c: char) -> bool {
    matches!(
        c,
        '+' | '.'
            | ','
            | '/'
            | '|'
            | '┌'
            | '╔'
            | '┏'
            | '╭'
            | '┬'
            | '├'
            | '┼'
            | '╒'
            | '╓'
            | '┍'
            | '┎'
            | '╠'
            | '╦'
            | '╬'
            | '┣'
            | '┳'
            | '╋'
            | '╞'
            | '╤'
            | '╪'
            | '╟'
    )
}

fn is_top_right(c: char) -> bool {
    matches!(
        c,
        '+' | '.'
            | ','
            | '\\'
            | '|'
            | '┐'
            | '╗'
            | '┓'
            | '╮'
            | '┬'
            | '┤'
            | '┼'
            | '╕'
            | '╖'
            | '┑'
            | '┒'
            | '╣'
            | '╦'
            | '╬'
            | '┫'
            | '┳'
            | '╋'
            | '╡'
            | '╤'
            | '╪'
            | '╢'
    )
}

fn is_bottom_left(c: char) -> bool {
    matches!(
        c,
        '+' | '\''
            | '`'
            | '\\'
            | '|'
            | '└'
            | '╚'
            | '┗'
            | '╰'
            | '┴'
            | '├'
            | '┼'
            | '╘'
            | '╙'
            | '┕'
            | '┖'
            | '╠'
            | '╩'
            | '╬'
            | '┣'
            | '┻'
            | '╋'
            | '╞'
            | '╧'
            | '╪'
            | '╟'
    )
}

fn is_bottom_right(c: char) -> bool {
    matches!(
        c,
        '+' | '\''
            | '/'
            | '|'
            | '┘'
            | '╝'
            | '┛'
            | '╯'
            | '┴'
            | '┤'
            | '┼'
            | '╛'
            | '╜'
            | '┙'
            | '┚'
            | '╣'
            | '╩'
            | '╬'
            | '┫'
            | '┻'
            | '╋'
            | '╡'
            | '╧'
            | '╪'
            | '╢'
    )
}

/// Corners such as `.` or `|` prove nothing by themselves: their edges must be unbroken strokes.
fn is_weak(c: char) -> bool {
    matches!(c, '.' | ',' | '\'' | '`' | '/' | '\\' | '|')
}

/// The smallest frame whose upper left corner is here.
fn close(grid: &Grid, top: usize, left: usize, budget: &mut Budget) -> Option<Frame> {
    let first = grid.at(top, left);
    let mut strokes = 1;
    let mut tried = 0;
    let width = grid.row(top).len();
    for right in left + 2..width {
        if !budget.spend() || tried > 6 {
            return None;
        }
        let c = grid.at(top, right);
        let before = grid.at(top, right - 1);
        let inner = right - left - 1;
        if is_top_right(c) && grid::is_horizontal(before) && edge_holds(first, c, strokes, inner) {
            tried += 1;
            if let Some((bottom, right_below)) = walk_down(grid, top, left, right, budget) {
                let titled = strokes < inner;
                let right = right.max(right_below);
                return Some(Frame {
                    top,
                    left,
                    bottom,
                    right,
                    titled,
                });
            }
        }
        if grid::is_horizontal(c) {
            strokes += 1;
        } else if is_weak(first) || (strokes * 2 < right - left && first == '+') || grid::is_bar(c)
        {
            return None;
        }
    }
    None
}

fn edge_holds(from: char, to: char, strokes: usize, inner: usize) -> bool {
    let weak = is_weak(from) || is_weak(to);
    if weak {
        return strokes == inner && inner >= 3 && is_weak(from) == is_weak(to);
    }
    strokes == inner || (strokes >= 2 && (from != '+' || strokes * 2 >= inner))
}

/// Follows both sides down to a closing edge. Hand-made right sides waver by a column or two.
fn walk_down(
    grid: &Grid,
    top: usize,
    left: usize,
    right: usize,
    budget: &mut Budget,
) -> Option<(usize, usize)> {
    let weak = is_weak(grid.at(top, left));
    for row in top + 1..grid.height() {
        if !budget.spend() {
            return None;
        }
        let side = grid.at(row, left);
        if row > top + 1
            && is_bottom_left(side)
            && is_weak(side) == weak
            && grid::is_horizontal(grid.at(row, left + 1))
            && let Some(end) = bottom_edge(grid, row, left, right, budget)
        {
            return Some((row, end));
        }
        let left_holds = grid::is_vertical(side) || enters(side);
        if !left_holds || !right_side(grid, row, right) {
            return None;
        }
    }
    None
}

/// An arrow may lead into a side.
fn enters(c: char) -> bool {
    matches!(c, '>' | '<' | '▶' | '►' | '◀' | '◄' | '→' | '←')
}

fn right_side(grid: &Grid, row: usize, right: usize) -> bool {
    let near = right.saturating_sub(2)..=right + 2;
    near.into_iter()
        .any(|column| grid::is_vertical(grid.at(row, column)))
        || enters(grid.at(row, right))
}

fn bottom_edge(
    grid: &Grid,
    row: usize,
    left: usize,
    right: usize,
    budget: &mut Budget,
) -> Option<usize> {
    let mut strokes = 0;
    let mut at = left + 1;
    let weak = is_weak(grid.at(row, left));
    loop {
        let c = grid.at(row, at);
        let closes =
            is_bottom_right(c) && is_weak(c) == weak && at.abs_diff(right) <= 2 && at > left + 1;
        // A `+` goes on being an edge when a better corner follows within reach.
        if closes && !(at < right && is_bottom_right(grid.at(row, right)) && grid::is_horizontal(c))
        {
            let inner = at - left - 1;
            return (strokes * 2 >= inner || (!weak && grid::is_box(c) && strokes >= 2))
                .then_some(at);
        }
        if at > right + 2 || !budget.spend() {
            return None;
        }
        if grid::is_horizontal(c) {
            strokes += 1;
        } else if weak {
            return None;
        }
        at += 1;
    }
}

/// Boxes whose top is a row of underscores: ` ____ ` over `|____|`.
fn close_underlined(grid: &Grid, top: usize, start: usize, budget: &mut Budget) -> Option<Frame> {
    let run = grid
        .row(top)
        .iter()
        .skip(start)
        .take_while(|c| **c == '_')
        .count();
    let (left, right) = (start - 1, start + run);
    if run < 3 || !matches!(grid.at(top, left), ' ' | '.' | ',') {
        return None;
    }
    for row in top + 1..grid.height() {
        if !budget.spend() || grid.at(row, left) != '|' || grid.at(row, right) != '|' {
            return None;
        }
        let under = (left + 1..right).all(|column| {
            let spent = budget.spend();
            spent && grid.at(row, column) == '_'
        });
        if under && row > top + 1 {
            return Some(Frame {
                top,
                left,
                bottom: row,
                right,
                titled: false,
            });
        }
    }
    None
}

/// An empty frame is a pattern, not a box.
fn holds_text(grid: &Grid, frame: &Frame) -> bool {
    (frame.top + 1..frame.bottom).take(40).any(|row| {
        let inner = grid.row(row).iter().take(frame.right).skip(frame.left + 1);
        inner.into_iter().any(|c| c.is_alphanumeric())
    })
}

fn panels(grid: &Grid, frames: &[Frame]) -> Vec<Panel> {
    // A forest: each frame points to another of its panel, the first one to itself.
    let mut forest: Vec<usize> = (0..frames.len()).collect();
    for (at, frame) in frames.iter().enumerate() {
        for (other_at, other) in frames.iter().enumerate().take(at) {
            if touch(frame, other) {
                let (from, to) = (root(&forest, at), root(&forest, other_at));
                if let Some(slot) = forest.get_mut(from.max(to)) {
                    *slot = from.min(to);
                }
            }
        }
    }
    let mut members: BTreeMap<usize, Vec<Frame>> = BTreeMap::new();
    for (at, frame) in frames.iter().enumerate() {
        members.entry(root(&forest, at)).or_default().push(*frame);
    }
    let panel = |frames: Vec<Frame>| {
        let hull = hull(&frames)?;
        let connected = is_connected(grid, &hull);
        Some(Panel {
            frames,
            hull,
            connected,
        })
    };
    members.into_values().filter_map(panel).collect()
}

fn root(forest: &[usize], mut at: usize) -> usize {
    while let Some(&up) = forest.get(at).filter(|up| **up != at) {
        at = up;
    }
    at
}

/// Whether two frames share a piece of an edge. One that lies inside the other with room around does not.
fn touch(a: &Frame, b: &Frame) -> bool {
    let rows = a.top.max(b.top) <= a.bottom.min(b.bottom);
    let columns = a.left.max(b.left) <= a.right.min(b.right);
    let near = |x: usize, y: usize| x.abs_diff(y) <= 1;
    let side =
        a.left == b.left || a.right == b.right || near(a.right, b.left) || near(a.left, b.right);
    let level = a.top == b.top || a.bottom == b.bottom || a.top == b.bottom || a.bottom == b.top;
    let inside = |x: &Frame, y: &Frame| {
        x.left > y.left && x.right < y.right && x.top > y.top && x.bottom < y.bottom
    };
    // Tables within tables, as some command lines print them: `||` on both sides.
    let hugged =
        |x: &Frame, y: &Frame| inside(x, y) && x.left == y.left + 1 && x.right + 1 == y.right;
    let apart = inside(a, b) || inside(b, a);
    hugged(a, b) || hugged(b, a) || (rows && columns && (side || level) && !apart)
}

fn hull(frames: &[Frame]) -> Option<Frame> {
    let first = frames.first()?;
    Some(frames.iter().fold(*first, |hull, frame| Frame {
        top: hull.top.min(frame.top),
        left: hull.left.min(frame.left),
        bottom: hull.bottom.max(frame.bottom),
        right: hull.right.max(frame.right),
        titled: hull.titled || frame.titled,
    }))
}

/// Inner columns of a table without outer sides: its separators run on to the left and to the right.
fn is_open_table(grid: &Grid, hull: &Frame) -> bool {
    let runs_on = |row: usize| {
        let before = hull.left.checked_sub(1);
        let left = before.is_some_and(|column| grid::is_dash(grid.at(row, column)));
        left && grid::is_dash(grid.at(row, hull.right + 1))
    };
    runs_on(hull.top) && runs_on(hull.bottom)
}

/// Whether a line or an arrow leaves or enters the outside of a panel.
fn is_connected(grid: &Grid, hull: &Frame) -> bool {
    let rows = hull.top + 1..hull.bottom;
    let sideways = rows.into_iter().take(60).any(|row| {
        let right = (hull.right + 1..hull.right + 4).map(|column| grid.at(row, column));
        let left = (1..4).map(|back| {
            hull.left
                .checked_sub(back)
                .map_or(' ', |column| grid.at(row, column))
        });
        stroke(right) || stroke(left)
    });
    sideways || below(grid, hull) || above(grid, hull)
}

/// At least two line pieces, or a drawn head, next to the side; one blank may stand between.
fn stroke(mut cells: impl Iterator<Item = char>) -> bool {
    let mut first = cells.next().unwrap_or(' ');
    if first == ' ' {
        first = cells.next().unwrap_or(' ');
    }
    let second = cells.next().unwrap_or(' ');
    let piece = |c: char| {
        grid::is_dash(c)
            || grid::is_head_left(c)
            || grid::is_head_right(c)
            || matches!(c, '+' | 'o' | '*')
    };
    let drawn =
        (grid::is_head_left(first) || grid::is_head_right(first)) && !matches!(first, '<' | '>');
    drawn || (piece(first) && piece(second) && !matches!(first, 'o' | '*' | '+'))
}

fn is_shaft(c: char) -> bool {
    grid::is_bar(c) || grid::is_head_down(c) || grid::is_head_up(c) || matches!(c, 'v' | 'V' | '^')
}

fn below(grid: &Grid, hull: &Frame) -> bool {
    hangs(grid, hull.bottom + 1, hull)
}

fn above(grid: &Grid, hull: &Frame) -> bool {
    hull.top
        .checked_sub(1)
        .is_some_and(|row| hangs(grid, row, hull))
}

/// Only connectors in the row within the panel's width, and at least one.
fn hangs(grid: &Grid, row: usize, hull: &Frame) -> bool {
    let mut shafts = 0;
    // Both sides going on means that the frame is a piece of a larger table.
    if grid::is_bar(grid.at(row, hull.left)) && grid::is_bar(grid.at(row, hull.right)) {
        return false;
    }
    for column in hull.left..=hull.right {
        let c = grid.at(row, column);
        let alone =
            grid.at(row, column + 1) == ' ' && (column == 0 || grid.at(row, column - 1) == ' ');
        if is_shaft(c)
            && (alone || !c.is_alphabetic())
            && (column > hull.left && column < hull.right)
        {
            shafts += 1;
        } else if c.is_alphanumeric() && shafts == 0 {
            return false;
        }
    }
    shafts > 0
}
