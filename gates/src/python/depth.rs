//! Nesting limits, checked on tokens before a tree exists.
//!
//! The parser grows its stack, but freeing and walking a tree recurse: 100,000 nested operators would abort the
//! process. `CPython` refuses such programs too (200 brackets, 100 indentation levels, a few thousand operators).

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::Mode;
use ruff_python_parser::lexer::lex;

use super::Refusal;

const BRACKETS: usize = 200;
const INDENTATION: usize = 100;
/// Operators, calls and attribute steps that may nest in one expression.
pub(super) const STEPS: usize = 6000;

pub(super) fn check(text: &str, mode: Mode) -> Result<(), Refusal> {
    let mut lexer = lex(text, mode);
    let mut nest = Nest::default();
    // The lexer shows kinds only: a line inside a long string is not counted.
    let mut line = 1_u32;
    loop {
        let kind = lexer.next_token();
        if kind == TokenKind::EndOfFile {
            return Ok(());
        }
        if let Some(what) = nest.take(kind) {
            return Err(Refusal::new(
                "py.too-deep",
                format!("nests more than {what}, which Python refuses as well"),
                "split the expression or the block into named parts",
            )
            .on(line));
        }
        if matches!(kind, TokenKind::Newline | TokenKind::NonLogicalNewline) {
            line = line.saturating_add(1);
        }
    }
}

#[derive(Default)]
struct Nest {
    indentation: usize,
    /// Steps on each open bracket level; the first is the statement's own.
    open: Vec<usize>,
    own: usize,
    total: usize,
}

impl Nest {
    fn take(&mut self, kind: TokenKind) -> Option<String> {
        use TokenKind as T;
        match kind {
            T::Indent => self.indentation += 1,
            T::Dedent => self.indentation = self.indentation.saturating_sub(1),
            T::Lpar | T::Lsqb | T::Lbrace | T::FStringStart | T::TStringStart => {
                self.step();
                self.open.push(self.own);
                self.own = 0;
            }
            T::Rpar | T::Rsqb | T::Rbrace | T::FStringEnd | T::TStringEnd => {
                self.total -= self.own;
                self.own = self.open.pop().unwrap_or(0);
            }
            T::Comma | T::Semi => self.restart(),
            T::Newline => {
                self.open.clear();
                self.own = 0;
                self.total = 0;
            }
            other => {
                if is_step(other) {
                    self.step();
                }
            }
        }
        if self.open.len() > BRACKETS {
            Some(format!("{BRACKETS} brackets"))
        } else if self.indentation > INDENTATION {
            Some(format!("{INDENTATION} indentation levels"))
        } else if self.total > STEPS {
            Some(format!("{STEPS} operators in one expression"))
        } else {
            None
        }
    }

    fn step(&mut self) {
        self.own += 1;
        self.total += 1;
    }

    fn restart(&mut self) {
        self.total -= self.own;
        self.own = 0;
    }
}

fn is_step(kind: TokenKind) -> bool {
    use TokenKind as T;
    kind.is_operator() && !matches!(kind, T::Colon | T::Equal | T::Ellipsis | T::Rarrow)
        || matches!(
            kind,
            T::Not
                | T::And
                | T::Or
                | T::Lambda
                | T::If
                | T::Else
                | T::Await
                | T::Yield
                | T::Is
                | T::In
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deep(text: &str) -> bool {
        check(text, Mode::Module).is_err()
    }

    #[test]
    fn hostile_nesting_is_refused_before_parsing() {
        let n = 100_000;
        let table = [
            format!("x = {}1{}\n", "[".repeat(n), "]".repeat(n)),
            format!("x = {}1\n", "-".repeat(n)),
            format!("x = {}1\n", "not ".repeat(n)),
            format!("x = a{}\n", "+a".repeat(n)),
            format!("x = a{}\n", ".b".repeat(n)),
            format!("x = a{}\n", "**a".repeat(n)),
            format!("x = a{}\n", "()".repeat(n)),
            format!("x = a{}\n", "[0]".repeat(n)),
            format!("x = {}1\n", "lambda: ".repeat(n)),
            format!("x = {}1\n", "1 if a else ".repeat(n)),
            format!("{}await x\n", "await ".repeat(n)),
        ];
        for text in table {
            assert!(deep(&text), "{}", text.chars().take(30).collect::<String>());
        }
    }

    #[test]
    fn long_and_flat_is_not_deep() {
        assert!(!deep(&format!(
            "x = [{}]\n",
            "a.b(1) + -2, ".repeat(50_000)
        )));
        assert!(!deep(&"x = a.b.c(1)[2]\n".repeat(50_000)));
        assert!(!deep(&format!("x = ({}'a')\n", "'a'\n".repeat(50_000))));
        assert!(!deep(&format!(
            "x = {}1{}\n",
            "(".repeat(200),
            ")".repeat(200)
        )));
        assert!(deep(&format!(
            "x = {}1{}\n",
            "(".repeat(201),
            ")".repeat(201)
        )));
    }
}
