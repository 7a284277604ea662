//! Markdown tables: the unit stands in the head, the file in the row.

use super::number;
use super::path;
use super::sentence::value_of;
use super::unit::named;
use super::{About, Claim, shown};
use crate::{ClaimKind, Comparison};

/// Units by column, once a head was read.
pub(super) type Columns = Vec<Option<(ClaimKind, f64)>>;

/// Claims of a table's row; `None` when the line is no row.
pub(super) fn row(line: &str, columns: &mut Option<Columns>) -> Option<Vec<Claim>> {
    let trimmed = line.trim();
    if !trimmed.starts_with('|') || trimmed.len() < 2 {
        *columns = None;
        return None;
    }
    let inner = trimmed.trim_start_matches('|').trim_end_matches('|');
    let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
    let Some(units) = columns else {
        let units: Columns = cells.iter().map(|cell| unit_of(cell)).collect();
        if units.iter().all(Option::is_none) {
            return None;
        }
        *columns = Some(units);
        return Some(Vec::new());
    };
    let file = cells
        .iter()
        .find_map(|cell| path::all(cell).0.into_iter().next());
    let mut claims = Vec::new();
    for (cell, unit) in cells.iter().zip(units.iter()) {
        let Some((kind, scale)) = unit else {
            continue;
        };
        let numbers = number::all(cell, &[]);
        if let [only] = numbers.as_slice()
            && only.start == cell.len() - cell.trim_start_matches(['~', '≈', '约']).len()
        {
            claims.push(Claim {
                text: shown(line),
                line: 0,
                kind: *kind,
                value: value_of(only.value * scale),
                comparison: if only.start > 0 || only.scaled || *scale > 1.0 {
                    Comparison::Approx
                } else {
                    Comparison::Eq
                },
                path: file.as_ref().map(|named| named.path.clone()),
                slack: 0.0,
                about: About::Unsaid,
            });
        }
    }
    Some(claims)
}

fn unit_of(head: &str) -> Option<(ClaimKind, f64)> {
    let known = head
        .split(|c: char| !c.is_ascii_alphanumeric())
        .find_map(named)
        .filter(|(kind, _)| *kind != ClaimKind::Files);
    known.or_else(|| {
        let kind = match head {
            "行数" | "行" | "代码行数" => ClaimKind::Lines,
            "字符数" | "字符" => ClaimKind::Chars,
            "字节数" | "字节" | "大小（字节）" => ClaimKind::Bytes,
            "字数" => ClaimKind::CjkWords,
            "函数" | "函数数" => ClaimKind::Functions,
            _ => return None,
        };
        Some((kind, 1.0))
    })
}
