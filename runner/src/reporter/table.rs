//! Lays out rows in columns. On a terminal a row is one line, cut at the edge; elsewhere nothing is
//! cut. Computes text; writes nothing.

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Row, Table, presets};

use super::agent_text::one_line;
use super::paint::{Paint, Tone, tone_of};

/// The table as lines. `width` is that of the terminal, in columns; none elsewhere.
pub(super) fn lines(
    headers: &[&str],
    rows: &[Vec<String>],
    width: Option<u16>,
    paint: Paint,
) -> Vec<String> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.force_no_tty();
    if paint.colours {
        table.enforce_styling();
    }
    match width {
        Some(width) => {
            table.set_width(width);
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_truncation_indicator("…");
        }
        None => {
            table.set_content_arrangement(ContentArrangement::Disabled);
        }
    }
    table.set_header(
        headers
            .iter()
            .map(|header| Cell::new(header.to_uppercase()).add_attribute(Attribute::Dim)),
    );
    for row in rows {
        let mut cells = Row::new();
        for text in row {
            cells.add_cell(cell(text));
        }
        if width.is_some() {
            cells.max_height(1);
        }
        table.add_row(cells);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

fn cell(text: &str) -> Cell {
    let text = one_line(text);
    let tone = tone_of(&text);
    let cell = Cell::new(text);
    match tone {
        Some(Tone::Good) => cell.fg(Color::Green),
        Some(Tone::Doubtful) => cell.fg(Color::Yellow),
        Some(Tone::Bad) => cell.fg(Color::Red),
        Some(Tone::Quiet) => cell.add_attribute(Attribute::Dim),
        Some(Tone::Strong) | None => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        vec![
            row([
                "t1",
                "landed",
                "a summary that is rather long for a narrow window",
            ]),
            row(["t22", "rejected", "nasty\n\u{1b}[2Jname"]),
        ]
    }

    #[test]
    fn nothing_is_cut_where_nobody_reads_columns() {
        let lines = lines(&["task", "state", "summary"], &rows(), None, Paint::PLAIN);
        insta::assert_snapshot!(lines.join("\n"), @"
        TASK  STATE     SUMMARY
        t1    landed    a summary that is rather long for a narrow window
        t22   rejected  nasty name
        ");
    }

    #[test]
    fn a_terminal_gets_one_line_a_row() {
        let lines = lines(
            &["task", "state", "summary"],
            &rows(),
            Some(40),
            Paint::PLAIN,
        );
        assert_eq!(lines.len(), 3);
        assert!(
            lines.iter().all(|line| line.chars().count() <= 40),
            "{lines:?}"
        );
    }

    #[test]
    fn status_words_have_their_colour() {
        let lines = lines(
            &["state"],
            &[vec!["landed".to_owned()]],
            None,
            Paint { colours: true },
        );
        assert!(
            lines.last().is_some_and(|line| line.contains("\u{1b}[")),
            "{lines:?}"
        );
    }
}
