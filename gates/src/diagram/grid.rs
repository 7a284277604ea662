//! A text block as a grid of characters, each on the column where an editor shows it.
//! Classes of characters (corners, lines, heads) live here and nowhere else.

/// Columns beyond this are not looked at: nobody draws wider.
const WIDEST: usize = 320;
/// Rows of one grid; longer blocks are looked at in pieces.
pub(super) const TALLEST: usize = 1000;

/// Characters by row and column. Outside, everything is blank.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    rows: Vec<Vec<char>>,
}

impl Grid {
    /// `wide`: whether East Asian characters take two columns, as most editors show them.
    pub(super) fn of(lines: &[&str], wide: bool) -> Self {
        let rows = lines.iter().map(|line| row(line, wide)).collect();
        Self { rows }
    }

    pub(super) fn height(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn row(&self, row: usize) -> &[char] {
        self.rows.get(row).map_or(&[], Vec::as_slice)
    }

    pub(super) fn cells(&self) -> usize {
        self.rows.iter().map(Vec::len).sum()
    }

    pub(super) fn at(&self, row: usize, column: usize) -> char {
        self.row(row).get(column).copied().unwrap_or(' ')
    }

    /// Blanks a row, so that a look-alike does not count.
    pub(super) fn blank(&mut self, row: usize) {
        if let Some(row) = self.rows.get_mut(row) {
            row.clear();
        }
    }

    pub(super) fn is_blank(&self, row: usize) -> bool {
        self.row(row).iter().all(|c| c.is_whitespace())
    }

    pub(super) fn text(&self, row: usize) -> String {
        self.row(row).iter().filter(|c| **c != '\0').collect()
    }
}

fn row(line: &str, wide: bool) -> Vec<char> {
    let mut row = Vec::with_capacity(line.len().min(WIDEST));
    for c in line.trim_end().chars() {
        if row.len() >= WIDEST {
            break;
        }
        match c {
            '\t' => {
                let stop = (row.len() / 4 + 1) * 4;
                row.resize(stop, ' ');
            }
            c if is_zero_width(c) => {}
            c => {
                row.push(c);
                if wide && is_wide(c) {
                    row.push('\0');
                }
            }
        }
    }
    row
}

fn is_zero_width(c: char) -> bool {
    matches!(u32::from(c), 0x300..=0x36f | 0x200b..=0x200f | 0xfe00..=0xfe0f | 0xfeff | 0x0)
}

pub(super) fn is_wide(c: char) -> bool {
    matches!(
        u32::from(c),
        0x1100..=0x115f | 0x2e80..=0x303e | 0x3041..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f
            | 0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1f64f | 0x1f680..=0x1f6ff | 0x1f900..=0x1f9ff
            | 0x20000..=0x3fffd
    )
}

/// Line pieces of the box drawing block.
pub(super) fn is_box(c: char) -> bool {
    matches!(c, '\u{2500}'..='\u{257f}')
}

/// Can lie in a horizontal edge.
pub(super) fn is_horizontal(c: char) -> bool {
    matches!(
        c,
        '-' | '='
            | '_'
            | '+'
            | '─'
            | '━'
            | '┄'
            | '┅'
            | '┈'
            | '┉'
            | '╌'
            | '╍'
            | '═'
            | '╼'
            | '╾'
    ) || matches!(c, '\u{250c}'..='\u{254b}' | '\u{2552}'..='\u{2570}')
}

/// A horizontal stroke and nothing else.
pub(super) fn is_dash(c: char) -> bool {
    matches!(
        c,
        '-' | '=' | '─' | '━' | '┄' | '┅' | '┈' | '┉' | '╌' | '╍' | '═' | '╼' | '╾'
    )
}

/// A vertical stroke and nothing else.
pub(super) fn is_bar(c: char) -> bool {
    matches!(
        c,
        '|' | '│' | '┃' | '║' | '┆' | '┇' | '┊' | '┋' | '╎' | '╏' | '╽' | '╿' | '¦'
    )
}

/// Can lie in a vertical edge.
pub(super) fn is_vertical(c: char) -> bool {
    is_bar(c) || c == '+' || matches!(c, '\u{250c}'..='\u{254b}' | '\u{2552}'..='\u{2570}')
}

pub(super) fn is_head_right(c: char) -> bool {
    matches!(
        c,
        '>' | '▶' | '►' | '→' | '⇒' | '▸' | '➜' | '➔' | '⟶' | '❯' | '⮕' | '➤' | '▷'
    )
}

pub(super) fn is_head_left(c: char) -> bool {
    matches!(c, '<' | '◀' | '◄' | '←' | '⇐' | '◂' | '⟵' | '⬅' | '◁')
}

/// Drawn heads that point down; the letter v is judged by what stands above it.
pub(super) fn is_head_down(c: char) -> bool {
    matches!(c, '▼' | '↓' | '⇓' | '⬇' | '▽' | '⇩' | '▾' | '⭣')
}

pub(super) fn is_head_up(c: char) -> bool {
    matches!(c, '▲' | '↑' | '⇑' | '⬆' | '△' | '⇧' | '▴')
}

pub(super) fn is_head(c: char) -> bool {
    is_head_right(c) || is_head_left(c) || is_head_down(c) || is_head_up(c)
}
