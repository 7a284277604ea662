//! Texts that look like drawings and are not: trees, compiler messages, logs. Their lines are blanked before a
//! block is looked at, so that a drawing beside them still counts.

use super::grid::{self, Grid};

/// Blanks the lines of known look-alikes.
pub(super) fn mask(grid: &mut Grid) {
    let lines: Vec<String> = (0..grid.height()).map(|row| grid.text(row)).collect();
    let filled = lines.iter().filter(|line| !line.trim().is_empty()).count();
    let mut masks: Vec<bool> = vec![false; lines.len()];
    tree(&lines, filled, &mut masks);
    compiler(&lines, &mut masks);
    log_graph(&lines, &mut masks);
    for (row, masked) in masks.into_iter().enumerate() {
        if masked {
            grid.blank(row);
        }
    }
}

fn set(masks: &mut [bool], lines: &[String], test: impl Fn(&str) -> bool) {
    for (mask, line) in masks.iter_mut().zip(lines) {
        *mask = *mask || test(line);
    }
}

/// Directory and call trees: half of the lines start with an elbow and a name.
fn tree(lines: &[String], filled: usize, masks: &mut [bool]) {
    let limbs = lines.iter().filter(|line| is_limb(line)).count();
    let plain_root = || {
        !lines
            .iter()
            .any(|line| !is_limb(line) && line.contains(grid::is_box))
    };
    if limbs * 2 >= filled && (limbs > 1 || (limbs == 1 && plain_root())) {
        let trunk = |line: &str| {
            line.chars()
                .all(|c| c.is_whitespace() || matches!(c, '│' | '|' | '┃' | '║'))
        };
        set(masks, lines, |line| is_limb(line) || trunk(line));
    }
}

/// `│   ├── name`, `|-- name`, `` `-- name``, `+- name`, `\--- name`, `└─> name`.
pub(super) fn is_limb(line: &str) -> bool {
    let line = line.trim_end();
    // `[INFO] +- group:artifact` as maven prints it.
    let line = line.trim_start_matches("[INFO]");
    let rest = line.trim_start_matches(|c: char| {
        c.is_whitespace() || matches!(c, '│' | '|' | '┃' | '║' | '·')
    });
    let from = if rest.starts_with(['-', '─']) {
        // The bar was the elbow: `|-- name`.
        let bar = line.len() - rest.len();
        line.get(..bar)
            .filter(|before| before.ends_with('|'))
            .map(|_| rest)
    } else {
        rest.strip_prefix([
            '├', '└', '╰', '┣', '┗', '╠', '╚', '`', '+', '\\', '\'', '┬', '┌', '╭',
        ])
    };
    let Some(after) = from else {
        return false;
    };
    let arm = after.trim_start_matches(['-', '─', '━', '═', '┬', '┐', '╴', '┳']);
    let boxy = rest.starts_with(['├', '└', '╰', '┣', '┗', '╠', '╚']);
    let name = if boxy {
        arm.trim_start_matches(['>', '▶', '→', '►'])
    } else {
        arm
    };
    let has_arm = after.len() > arm.len();
    let name = name.trim_start();
    has_arm
        && !name.is_empty()
        && name.starts_with(|c: char| !"-+|>─┐┘│┤'`".contains(c))
        && !ends_as_frame(line)
}

fn ends_as_frame(line: &str) -> bool {
    line.ends_with(['+', '|', '\'', '┐', '┘', '╮', '╯', '│', '┤', '╗', '╝', '║'])
}

/// rustc, miette and their like: a place line, then lines behind a gutter.
fn compiler(lines: &[String], masks: &mut [bool]) {
    let place = |line: &str| {
        let line = line.trim_start();
        let located = |rest: &str| {
            rest.rsplit(':')
                .next()
                .is_some_and(|last| last.trim_end_matches(']').parse::<u32>().is_ok())
        };
        line.strip_prefix("-->").is_some_and(located)
            || line.strip_prefix(":::").is_some_and(located)
            || line.starts_with("╭─[")
            || line.starts_with("╭────[")
            || line.starts_with("┌─ ")
            || line.starts_with(",-[")
    };
    let header = |line: &str| {
        let line = line.trim_start();
        [
            "error:", "error[", "warning:", "warning[", "Error:", "× ", "help:", "note:",
        ]
        .iter()
        .any(|word| line.starts_with(word))
    };
    if !lines.iter().any(|line| place(line) || header(line))
        || !lines.iter().any(|line| gutter(line) || place(line))
    {
        return;
    }
    set(masks, lines, |line| {
        place(line) || gutter(line) || header(line) || line.trim_start().starts_with(['╰', '`'])
    });
}

/// `12 | code`, `   |  ^^^`, `   · note`, `= help: …`.
fn gutter(line: &str) -> bool {
    let line = line.trim_start();
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let rest = line.get(digits..).unwrap_or("").trim_start();
    line.starts_with("...") || line.starts_with("= ") || rest.starts_with(['|', '│', '·', '┆', '╎'])
}

/// `git log --graph`: a hash behind the star.
fn log_graph(lines: &[String], masks: &mut [bool]) {
    let commit = |line: &str| {
        let rest = line.trim_start_matches(['|', '/', '\\', ' ', '_', '-', '.']);
        let Some(after) = rest.strip_prefix('*') else {
            return false;
        };
        let word = after.trim_start_matches(['|', '/', '\\', ' ', '-', '.', '_']);
        let word = word.strip_prefix("commit ").unwrap_or(word);
        let hash = word.chars().take_while(char::is_ascii_hexdigit).count();
        (7..=64).contains(&hash) && word.chars().nth(hash).is_none_or(char::is_whitespace)
    };
    if lines.iter().any(|line| commit(line)) {
        let strand = |line: &str| line.trim_start().starts_with(['|', '/', '\\', '*']);
        set(masks, lines, |line| commit(line) || strand(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limbs_of_trees() {
        for line in [
            "├── src",
            "│   └── a.rs",
            "|-- src",
            "|   `-- b",
            "+--- lib",
            "\\--- lib",
            "[INFO] +- junit:junit",
            "└─> call()",
            "├─┬ pkg",
        ] {
            assert!(is_limb(line), "{line}");
        }
        for line in [
            "+-----+",
            "+-- Title --+",
            "|--->|",
            "| a |",
            "└────┘",
            "+----+   +----+",
            "text",
            "|----| B |",
        ] {
            assert!(!is_limb(line), "{line}");
        }
    }
}
