//! Finds flows without frames: text joined by drawn arrows, sequence charts, graphs with slashes.

use super::grid::{self, Grid};

/// What one row is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    Blank,
    /// Line pieces and heads only.
    Connector,
    /// A shaft with a word beside it.
    Labelled,
    Text,
}

/// Text nodes joined by connector rows, or lifelines with arrows between them. `running`: outside any code block,
/// where one arrow between two lines is still prose.
pub(super) fn is_flow(grid: &Grid, running: bool) -> bool {
    let links = vertical_links(grid);
    let enough = if running { 2 } else { 1 };
    let sure = links.iter().filter(|link| !link.beside_code).count();
    sure >= 2 || (sure >= enough && links.len() == sure) || is_sequence(grid) || elbows(grid) > 1
}

struct Link {
    beside_code: bool,
}

fn rows(grid: &Grid) -> Vec<Row> {
    let mut rows: Vec<Row> = (0..grid.height()).map(|row| kind(grid, row)).collect();
    // A labelled shaft counts only when the shaft goes on above or below.
    for row in 0..rows.len() {
        if rows.get(row) == Some(&Row::Labelled) {
            let above = row
                .checked_sub(1)
                .is_some_and(|above| rows.get(above) == Some(&Row::Connector));
            let below = rows.get(row + 1) == Some(&Row::Connector);
            if let Some(slot) = rows.get_mut(row).filter(|_| !above && !below) {
                *slot = Row::Text;
            }
        }
    }
    rows
}

fn kind(grid: &Grid, row: usize) -> Row {
    if grid.is_blank(row) {
        return Row::Blank;
    }
    let text = grid.text(row);
    let mut shafts = 0;
    let mut words = 0;
    for token in text.split_whitespace() {
        if token.chars().all(is_connector) || matches!(token, "v" | "V") {
            shafts += usize::from(
                token
                    .chars()
                    .any(|c| !grid::is_dash(c) && c != '+' && c != '.'),
            );
        } else {
            words += 1;
        }
    }
    let starts_with_shaft = text
        .trim_start()
        .starts_with(|c: char| grid::is_bar(c) || grid::is_head_down(c) || grid::is_head_up(c));
    match (shafts, words) {
        (0, _) => Row::Text,
        (_, 0) => Row::Connector,
        _ if starts_with_shaft
            && text
                .trim_start()
                .chars()
                .nth(1)
                .is_some_and(char::is_whitespace)
            && !text.trim_end().ends_with('|') =>
        {
            Row::Labelled
        }
        _ => Row::Text,
    }
}

fn is_connector(c: char) -> bool {
    grid::is_bar(c)
        || grid::is_box(c)
        || grid::is_head(c)
        || grid::is_dash(c)
        || matches!(c, '/' | '\\' | '+' | '^' | ':' | '.' | '\'')
}

/// Runs of connector rows that hold a head, with text above and below.
fn vertical_links(grid: &Grid) -> Vec<Link> {
    let rows = rows(grid);
    let joins = |row: usize| matches!(rows.get(row), Some(Row::Connector | Row::Labelled));
    let mut links = Vec::new();
    let mut row = 0;
    while row < rows.len() {
        if !joins(row) {
            row += 1;
            continue;
        }
        let first = row;
        while joins(row) {
            row += 1;
        }
        let headed = (first..row).any(|at| holds_head(grid, first, at));
        let above = neighbour(&rows, first.checked_sub(1), |at| at.checked_sub(1));
        let below = neighbour(&rows, Some(row), |at| Some(at + 1));
        if let (true, Some(above), Some(below)) = (headed, above, below) {
            let (above, below) = (grid.text(above), grid.text(below));
            if has_words(&above) && has_words(&below) {
                links.push(Link {
                    beside_code: looks_like_code(&above) || looks_like_code(&below),
                });
            }
        }
    }
    links
}

/// The text row next to a run; one blank row may lie between.
fn neighbour(
    rows: &[Row],
    from: Option<usize>,
    step: impl Fn(usize) -> Option<usize>,
) -> Option<usize> {
    let at = from?;
    match rows.get(at)? {
        Row::Text => Some(at),
        Row::Blank => step(at).filter(|next| rows.get(*next) == Some(&Row::Text)),
        Row::Connector | Row::Labelled => None,
    }
}

/// A drawn head, or a `v` under a shaft. `^` alone is how people point at code.
fn holds_head(grid: &Grid, first: usize, row: usize) -> bool {
    grid.row(row).iter().enumerate().any(|(column, c)| {
        let drawn = grid::is_head_down(*c) || grid::is_head_up(*c);
        let free = |at: Option<usize>| {
            at.is_none_or(|at| !grid.at(row, at).is_alphanumeric() && grid.at(row, at) != '_')
        };
        let alone = free(column.checked_sub(1)) && free(Some(column + 1));
        let letter = matches!(c, 'v' | 'V') && row > first && alone && {
            let near = column.saturating_sub(1)..=column + 1;
            near.into_iter().any(|at| {
                let up = grid.at(row - 1, at);
                grid::is_bar(up) || matches!(up, '/' | '\\' | ':' | '+') || grid::is_box(up)
            })
        };
        drawn || letter
    })
}

fn has_words(text: &str) -> bool {
    text.chars().any(char::is_alphanumeric)
}

/// Marks that people write in code and not in the nodes of a figure.
pub(super) fn looks_like_code(text: &str) -> bool {
    const MARKS: &[&str] = &[
        ";", "{", "}", " = ", "==", "::", "=>", "fn ", "let ", "def ", "//", "#include", "return ",
        "&&", "||", "\")", "(\"", "$ ", "!(", "![", "+=", "<T>", "&mut", "*/", "/*", ":=", "...]",
        "\":",
    ];
    MARKS.iter().any(|mark| text.contains(mark))
}

/// Two rows or more with an arrow that runs from one lifeline to another, or arrows to and fro between two sides.
fn is_sequence(grid: &Grid) -> bool {
    let mut between = 0;
    let (mut there, mut back) = (0, 0);
    for row in 0..grid.height() {
        let text = grid.text(row);
        let mut parts = text.split(grid::is_bar);
        parts.next();
        let inner: Vec<&str> = parts.collect();
        let closed = inner.len().saturating_sub(1);
        between += usize::from(
            inner
                .iter()
                .take(closed)
                .any(|part| arrow(part, 1).is_some()),
        );
        match arrow(text.trim(), 0) {
            Some(true) => there += 1,
            Some(false) => back += 1,
            None => {}
        }
    }
    between >= 2 || (there >= 1 && back >= 1)
}

/// A long arrow, perhaps with a word on it, that fills the part: `Some(true)` to the right, `Some(false)` to the left.
fn arrow(part: &str, slack: usize) -> Option<bool> {
    let trimmed = part.trim_matches(' ');
    if part.chars().count() > trimmed.chars().count() + slack * 2 {
        return None;
    }
    let (first, last) = (trimmed.chars().next()?, trimmed.chars().next_back()?);
    let dashes = trimmed.chars().filter(|c| grid::is_dash(*c)).count();
    let least = if slack == 0 { 8 } else { 3 };
    if dashes < least || trimmed.chars().any(|c| matches!(c, '"' | ';')) {
        return None;
    }
    if grid::is_dash(first) && grid::is_head_right(last) {
        return Some(true);
    }
    (grid::is_head_left(first) && grid::is_dash(last)).then_some(false)
}

/// Branches: `+--> b` below a piece of line that has text before it.
fn elbows(grid: &Grid) -> usize {
    let mut found = 0;
    for row in 1..grid.height() {
        let cells = grid.row(row);
        let Some(column) = cells.iter().position(|c| !c.is_whitespace()) else {
            continue;
        };
        if !matches!(
            grid.at(row, column),
            '+' | '\\' | '`' | '\'' | '|' | '└' | '├' | '╰'
        ) {
            continue;
        }
        let arm = cells
            .iter()
            .skip(column + 1)
            .take_while(|c| grid::is_dash(**c))
            .count();
        if arm == 0 || !grid::is_head_right(grid.at(row, column + 1 + arm)) {
            continue;
        }
        let mut up = row - 1;
        while up > 0
            && row - up < 12
            && (grid::is_bar(grid.at(up, column)) || matches!(grid.at(up, column), '├' | '└'))
        {
            up -= 1;
        }
        let top = grid.at(up, column);
        let before = grid
            .row(up)
            .iter()
            .take(column)
            .any(|c| c.is_alphanumeric());
        let joined = matches!(top, '+' | '┬' | '┐' | '╮') || grid::is_dash(top);
        found += usize::from(joined && before) * 2;
    }
    found
}

/// `A---B---C` with slashes beside it, or two rows of branching slashes between nodes.
pub(super) fn is_graph(grid: &Grid) -> bool {
    let slashes: Vec<bool> = (0..grid.height())
        .map(|row| only_slashes(grid, row))
        .collect();
    let beside = |row: usize| {
        let above = row
            .checked_sub(1)
            .is_some_and(|above| slashes.get(above) == Some(&true));
        above || slashes.get(row + 1) == Some(&true)
    };
    let chained = (0..grid.height()).any(|row| beside(row) && chain_links(&grid.text(row)) >= 2);
    chained || branches(grid, &slashes) >= 2
}

fn only_slashes(grid: &Grid, row: usize) -> bool {
    let cells = grid.row(row);
    let drawn = cells.iter().any(|c| matches!(c, '/' | '\\'));
    drawn
        && cells
            .iter()
            .all(|c| matches!(c, '/' | '\\' | '|' | ' ' | '.' | 'X'))
}

/// Links such as `---` between short nodes in one row.
fn chain_links(text: &str) -> usize {
    let node = |c: char| {
        c.is_alphanumeric() || matches!(c, '*' | '.' | '\'' | '(' | ')' | '[' | ']' | '@')
    };
    let mut links = 0;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("--") {
        let after = after.trim_start_matches('-');
        let ended = before.chars().next_back().is_some_and(node);
        links += usize::from(ended && after.chars().next().is_some_and(node));
        rest = after;
    }
    links
}

/// Rows with a slash and a backslash apart, with nodes above and below.
fn branches(grid: &Grid, slashes: &[bool]) -> usize {
    let node = |row: Option<usize>| {
        let text = row.map(|row| grid.text(row)).unwrap_or_default();
        let short = text
            .split_whitespace()
            .all(|word| word.chars().count() <= 16);
        has_words(&text) && short && !text.contains("__") && text.split_whitespace().count() <= 12
    };
    let forked = |row: usize| {
        let text = grid.text(row);
        let apart = |pair: &str| {
            text.split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(pair)
        };
        apart("/ \\") || apart("\\ /") || apart("/ | \\")
    };
    (0..grid.height())
        .filter(|row| {
            slashes.get(*row) == Some(&true)
                && forked(*row)
                && node(row.checked_sub(1))
                && node(Some(row + 1))
        })
        .count()
}
