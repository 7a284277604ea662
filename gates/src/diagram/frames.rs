//! Says how the closed rectangles of a grid stand to one another: apart, nested, joined, or cells of a table.
//! It must never take a table for a figure.

use std::collections::BTreeMap;

use super::grid::{self, Grid};
use super::trace::{Frame, trace};

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
