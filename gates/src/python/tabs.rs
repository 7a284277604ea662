//! `CPython`'s rule for mixed tabs and spaces: an indentation must compare the same with a tab as 8 and as 1.
//! The parser accepts some files that `CPython` refuses here.

use ruff_python_ast::token::TokenKind;
use ruff_text_size::{Ranged as _, TextRange};

use super::Script;

/// The first line whose indentation is ambiguous.
pub(super) fn error(script: &Script) -> Option<(TextRange, String)> {
    // Files without an indenting tab, nearly all, need no token walk.
    if !script.text.contains('\t') {
        return None;
    }
    let mut stack = vec![(0_u32, 0_u32)];
    let mut fresh = true;
    for token in script.parsed.tokens() {
        match token.kind() {
            TokenKind::Newline => fresh = true,
            TokenKind::Comment
            | TokenKind::NonLogicalNewline
            | TokenKind::Indent
            | TokenKind::Dedent => {}
            TokenKind::EndOfFile => break,
            _ if fresh => {
                fresh = false;
                let start = script.lines.start_of(token.start().into()) as usize;
                let margin = script
                    .text
                    .get(start..token.start().to_usize())
                    .unwrap_or_default();
                if !fits(&mut stack, width(margin)) {
                    return Some((
                        token.range(),
                        "inconsistent use of tabs and spaces in indentation".to_owned(),
                    ));
                }
            }
            _ => {}
        }
    }
    None
}

fn width(margin: &str) -> (u32, u32) {
    let mut wide = 0;
    let mut narrow = 0;
    for c in margin.chars() {
        match c {
            '\t' => {
                wide = (wide / 8 + 1) * 8;
                narrow += 1;
            }
            '\u{c}' => {
                wide = 0;
                narrow = 0;
            }
            _ => {
                wide += 1;
                narrow += 1;
            }
        }
    }
    (wide, narrow)
}

fn fits(stack: &mut Vec<(u32, u32)>, (wide, narrow): (u32, u32)) -> bool {
    while let Some(&(top_wide, top_narrow)) = stack.last() {
        if wide == top_wide {
            return narrow == top_narrow;
        }
        if wide > top_wide {
            stack.push((wide, narrow));
            return narrow > top_narrow;
        }
        stack.pop();
    }
    true
}
