//! Makes text that an agent wrote safe to show: colours pass, everything else that a terminal
//! would act on is taken out. It must never let a sequence through that it does not know.

/// A filter for a stream of bytes; pieces may be cut anywhere, also within a character.
#[derive(Debug)]
pub struct Filter {
    colours: bool,
    state: State,
    partial: Vec<u8>,
    after_cr: bool,
    /// The colours that the text asks for, as sequences since the last reset.
    wanted: String,
    /// The colours that were given out; empty after each line, so that no line dyes the next.
    given: String,
}

#[derive(Debug)]
enum State {
    Text,
    Escape,
    /// After ESC and an intermediate byte: one final byte is to come.
    Charset,
    Sequence(String),
    /// A string for the terminal (title, clipboard, link, …): dropped up to its end or the line's.
    Hidden,
    HiddenEscape,
}

/// A control sequence longer than this is no colour.
const LONGEST_SEQUENCE: usize = 48;
/// More colours than this in force at once are somebody's game.
const MOST_WANTED: usize = 256;
const RESET: &str = "\u{1b}[0m";

impl Filter {
    /// A filter that lets colours pass, or not even them.
    pub fn new(colours: bool) -> Self {
        Self {
            colours,
            state: State::Text,
            partial: Vec::new(),
            after_cr: false,
            wanted: String::new(),
            given: String::new(),
        }
    }

    /// Takes the next piece and gives what may be shown of it.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        let mut shown = String::with_capacity(all.len());
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let (good, skip) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let (good, _) = rest.split_at(error.valid_up_to());
                    let good = std::str::from_utf8(good).expect("checked by the call above");
                    (good, Some(error.error_len()))
                }
            };
            for character in good.chars() {
                self.take(character, &mut shown);
            }
            let (_, after) = rest.split_at(good.len());
            rest = match skip {
                None => &[],
                Some(None) => {
                    self.partial = after.to_vec();
                    &[]
                }
                Some(Some(bad)) => {
                    self.take(char::REPLACEMENT_CHARACTER, &mut shown);
                    after.split_at(bad).1
                }
            };
        }
        shown
    }

    /// Ends the stream: half characters are shown as such, colours are put out.
    pub fn end(&mut self) -> String {
        let mut shown = String::new();
        self.state = State::Text;
        if !std::mem::take(&mut self.partial).is_empty() {
            self.take(char::REPLACEMENT_CHARACTER, &mut shown);
        }
        if std::mem::take(&mut self.after_cr) {
            self.text('\n', &mut shown);
        }
        self.put_out(&mut shown);
        self.wanted.clear();
        shown
    }

    fn take(&mut self, character: char, shown: &mut String) {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Text => self.text(character, shown),
            State::Escape => self.escape(character, shown),
            State::Charset => match character {
                ' '..='/' => self.state = State::Charset,
                '0'..='~' => {}
                _ => self.text(character, shown),
            },
            State::Sequence(mut sequence) => match character {
                ' '..='?' if sequence.len() < LONGEST_SEQUENCE => {
                    sequence.push(character);
                    self.state = State::Sequence(sequence);
                }
                'm' => self.colour(&sequence),
                '@'..='~' => {}
                // Too long, or broken off by something that belongs to the text.
                _ => self.text(character, shown),
            },
            State::Hidden => match character {
                '\u{7}' | '\u{9c}' => {}
                '\u{1b}' => self.state = State::HiddenEscape,
                '\n' => self.text(character, shown),
                _ => self.state = State::Hidden,
            },
            State::HiddenEscape => {
                if character != '\\' {
                    self.escape(character, shown);
                }
            }
        }
    }

    fn escape(&mut self, character: char, shown: &mut String) {
        match character {
            '[' => self.state = State::Sequence(String::new()),
            ']' | 'P' | 'X' | '^' | '_' => self.state = State::Hidden,
            ' '..='/' => self.state = State::Charset,
            '0'..='~' => {}
            _ => self.text(character, shown),
        }
    }

    fn text(&mut self, character: char, shown: &mut String) {
        // A lone carriage return would let a line be overwritten by the next: it ends the line.
        if std::mem::take(&mut self.after_cr) && character != '\n' {
            self.newline(shown);
        }
        match character {
            '\n' => self.newline(shown),
            '\r' => self.after_cr = true,
            '\u{1b}' => self.state = State::Escape,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => self.state = State::Hidden,
            '\u{9b}' => self.state = State::Sequence(String::new()),
            '\t' => shown.push('\t'),
            _ if character.is_control() || turns_text_round(character) => {}
            _ => {
                self.light(shown);
                shown.push(character);
            }
        }
    }

    fn newline(&mut self, shown: &mut String) {
        self.put_out(shown);
        shown.push('\n');
    }

    fn put_out(&mut self, shown: &mut String) {
        if !self.given.is_empty() {
            shown.push_str(RESET);
            self.given.clear();
        }
    }

    /// Gives the terminal the colours that the next character wants.
    fn light(&mut self, shown: &mut String) {
        if self.wanted == self.given {
            return;
        }
        if !self.wanted.starts_with(&self.given) {
            self.put_out(shown);
        }
        shown.push_str(
            self.wanted
                .strip_prefix(&self.given)
                .unwrap_or(&self.wanted),
        );
        self.given.clone_from(&self.wanted);
    }

    fn colour(&mut self, parameters: &str) {
        if !self.colours {
            return;
        }
        let (kept, reset) = colours_of(parameters);
        if reset || self.wanted.len() > MOST_WANTED {
            self.wanted.clear();
        }
        if !kept.is_empty() {
            self.wanted.push_str("\u{1b}[");
            self.wanted.push_str(&kept);
            self.wanted.push('m');
        }
    }
}

/// The parameters that only colour (no blinking, no concealing), after the last reset among them,
/// and whether there was one.
fn colours_of(parameters: &str) -> (String, bool) {
    let mut kept: Vec<String> = Vec::new();
    let mut reset = false;
    let mut numbers = parameters.split(';');
    while let Some(number) = numbers.next() {
        let plain: Option<u16> = if number.is_empty() {
            Some(0)
        } else {
            number.parse().ok()
        };
        match plain {
            Some(0) => {
                reset = true;
                kept.clear();
            }
            Some(38 | 48 | 58) => {
                let count = match numbers.next() {
                    Some("5") => 1,
                    Some("2") => 3,
                    _ => break,
                };
                let values: Vec<&str> = numbers.by_ref().take(count).collect();
                let good =
                    values.len() == count && values.iter().all(|value| value.parse::<u8>().is_ok());
                if good {
                    let kind = if count == 1 { "5" } else { "2" };
                    kept.push(format!("{number};{kind};{}", values.join(";")));
                }
            }
            Some(
                1..=4 | 7 | 9 | 21..=24 | 27 | 29..=37 | 39..=47 | 49 | 59 | 90..=97 | 100..=107,
            ) => {
                kept.push(number.to_owned());
            }
            _ => {}
        }
    }
    (kept.join(";"), reset)
}

/// Characters that make text read in another order than it is stored.
fn turns_text_round(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A whole text made safe, without colours; lines stay lines.
pub fn plain(text: &str) -> String {
    let mut filter = Filter::new(false);
    let mut shown = filter.push(text.as_bytes());
    shown.push_str(&filter.end());
    shown
}

/// A text made safe to stand within one line; ends of lines and tabs become spaces.
pub fn one_line(text: &str) -> String {
    plain(text).replace(['\n', '\t'], " ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filtered(bytes: &[u8], colours: bool) -> String {
        let mut filter = Filter::new(colours);
        let mut shown = filter.push(bytes);
        shown.push_str(&filter.end());
        shown
    }

    #[test]
    fn colours_pass_and_end_with_the_line() {
        assert_eq!(
            filtered(b"a \x1b[31mred\nstill\x1b[m not\n", true),
            "a \x1b[31mred\x1b[0m\n\x1b[31mstill\x1b[0m not\n"
        );
        assert_eq!(
            filtered(b"\x1b[1;38;5;200mx", true),
            "\x1b[1;38;5;200mx\x1b[0m"
        );
        assert_eq!(filtered(b"\x1b[31mred", false), "red");
    }

    #[test]
    fn concealing_and_blinking_do_not() {
        assert_eq!(filtered(b"\x1b[8mhidden\x1b[5mx", true), "hiddenx");
        assert_eq!(filtered(b"\x1b[38;2;1;2mx\x1b[38;9mx", true), "xx");
    }

    #[test]
    fn what_moves_titles_links_or_answers_goes() {
        let cases: [(&[u8], &str); 9] = [
            (b"\x1b]0;owned\x07a", "a"),
            (b"\x1b]52;c;aGk=\x1b\\a", "a"),
            (b"\x1b[2J\x1b[1;1Ha", "a"),
            (b"\x1bPq#0\x1b\\a", "a"),
            (b"\xc2\x9b2Ja\xc2\x9d0;t\x07b", "ab"),
            (b"ok\rfake\r\nend", "ok\nfake\nend"),
            (b"a\x08\x08b\x07\x00", "ab"),
            ("a\u{202e}txt.exe\u{2066}".as_bytes(), "atxt.exe"),
            (b"\x9b2J \xff", "\u{fffd}2J \u{fffd}"),
        ];
        for (input, shown) in cases {
            assert_eq!(filtered(input, true), shown, "{input:?}");
        }
    }

    #[test]
    fn an_unended_string_hides_no_more_than_its_line() {
        assert_eq!(filtered(b"\x1b]0;never ended\nseen", true), "\nseen");
        assert_eq!(filtered(b"\x1b[99999\nseen", true), "\nseen");
    }

    #[test]
    fn one_line_is_one_line() {
        assert_eq!(one_line("a\nb\t\x1b[31mc\r\n"), "a b c");
    }

    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<u8>().prop_map(|byte| vec![byte]),
            Just(b"\x1b[".to_vec()),
            Just(b"\x1b]".to_vec()),
            Just(b"\x1b[31m".to_vec()),
            Just(b"0;1;38;5;7m".to_vec()),
            Just(b"\xc2\x9b".to_vec()),
            Just("\u{202e}é漢".as_bytes().to_vec()),
            Just(b"\r\n".to_vec()),
        ];
        proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    /// What is left when the colours are taken out.
    fn without_colours(text: &str) -> String {
        let mut left = String::new();
        let mut pieces = text.split("\u{1b}[");
        left.push_str(pieces.next().unwrap());
        for piece in pieces {
            let (parameters, rest) = piece.split_once('m').expect("a colour has an end");
            assert!(
                parameters.bytes().all(|b| b.is_ascii_digit() || b == b';'),
                "{parameters:?}"
            );
            left.push_str(rest);
        }
        left
    }

    proptest! {
        #[test]
        fn nothing_but_colours_controls_the_terminal(bytes in hostile(), colours: bool) {
            let shown = filtered(&bytes, colours);
            let left = without_colours(&shown);
            prop_assert!(left.chars().all(|c| c == '\n' || c == '\t' || !(c.is_control() || turns_text_round(c))));
            prop_assert!(colours || left == shown);
            if let Some((_, tail)) = shown.rsplit_once("\u{1b}[") {
                prop_assert!(tail.starts_with("0m"), "left lit: {:?}", shown);
            }
        }

        #[test]
        fn cuts_do_not_matter(bytes in hostile(), cut in 0usize..60) {
            let cut = cut.min(bytes.len());
            let (head, tail) = bytes.split_at(cut);
            let mut filter = Filter::new(true);
            let mut shown = filter.push(head);
            shown.push_str(&filter.push(tail));
            shown.push_str(&filter.end());
            prop_assert_eq!(shown, filtered(&bytes, true));
        }

        #[test]
        fn ordinary_text_is_left_alone(text in "[a-zA-Z0-9 äß漢字🙂\n\t.,;:/-]{0,80}") {
            prop_assert_eq!(filtered(text.as_bytes(), true), text);
        }
    }
}
