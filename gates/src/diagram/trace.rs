//! Finds closed rectangles, traced corner to corner.
//! Work is bounded by a budget in proportion to the grid, whatever it holds.

use super::grid::{self, Grid};

/// A closed rectangle; corners included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) top: usize,
    pub(super) left: usize,
    pub(super) bottom: usize,
    pub(super) right: usize,
    /// Words stand in the top edge, as in the panels of terminal programs.
    pub(super) titled: bool,
}

/// More frames than this are not told apart any better.
const MOST: usize = 400;

/// Steps left; when none are, tracing stops with what it has.
struct Budget(usize);

impl Budget {
    fn spend(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

/// All frames of a grid that hold text, each the smallest at its upper left corner.
pub(super) fn trace(grid: &Grid) -> Vec<Frame> {
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
