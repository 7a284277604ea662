//! Walks the tags of HTML, and reads its attributes and character references.
//! One pass: every byte is looked at a bounded number of times, and nothing is built.

/// Where the HTML stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The document is HTML: its text is prose.
    Page,
    /// HTML within another format, which reads the prose itself.
    Within,
}

/// One start or end tag.
#[derive(Debug)]
pub(super) struct Tag {
    pub(super) start: usize,
    pub(super) end: usize,
    /// As written.
    pub(super) name: String,
    pub(super) closing: bool,
    pub(super) empty: bool,
    pub(super) attributes: Vec<(String, String)>,
}

impl Tag {
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// Walks the tags of a text; comments are handed out as they are met.
#[derive(Debug)]
pub(super) struct Tags<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    last_double: usize,
    last_single: usize,
    last_comment_end: usize,
    /// Comments met so far: offset and content.
    pub(super) comments: Vec<(usize, String)>,
    /// Elements of which no end tag is left, so that nobody looks for one again.
    unended: Vec<String>,
}

impl<'a> Tags<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            last_double: text.rfind('"').unwrap_or(0),
            last_single: text.rfind('\'').unwrap_or(0),
            last_comment_end: text.rfind("-->").unwrap_or(0),
            comments: Vec::new(),
            unended: Vec::new(),
        }
    }

    /// What stands between a start tag and the next end tag of that name; moves behind it.
    pub(super) fn body(&mut self, tag: &Tag, name: &str, place: Place) -> &'a str {
        let rest = self.rest(tag.end);
        let mut from = 0;
        while !self.unended.iter().any(|known| known == name) {
            let Some(at) = rest.get(from..).and_then(|piece| piece.find("</")) else {
                self.unended.push(name.to_owned());
                break;
            };
            let here = from + at;
            let after = rest
                .as_bytes()
                .get(here + 2..here + 2 + name.len())
                .unwrap_or_default();
            if after.eq_ignore_ascii_case(name.as_bytes()) {
                self.at = tag.end + here;
                return rest.get(..here).unwrap_or("");
            }
            from = here + 2;
        }
        // A browser reads on to the end of a page; in other formats the rest is not the element's.
        if place == Place::Page {
            self.at = self.text.len();
            rest
        } else {
            self.at = tag.end;
            ""
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    fn rest(&self, at: usize) -> &'a str {
        self.text.get(at..).unwrap_or("")
    }

    /// Skips a comment at `at`, if there is one.
    fn comment(&mut self, at: usize) -> bool {
        if !self.rest(at).starts_with("<!--") {
            return false;
        }
        let line_start = at == 0 || self.byte(at - 1) == b'\n';
        if at + 4 <= self.last_comment_end {
            let length = self.rest(at + 4).find("-->").unwrap_or(0);
            let content = self.text.get(at + 4..at + 4 + length).unwrap_or("");
            self.comments.push((at, content.to_owned()));
            self.at = at + 4 + length + 3;
        } else if line_start {
            self.at = self.text.len();
        } else {
            self.at = at + 4;
        }
        true
    }

    fn tag(&mut self, at: usize) -> Option<Tag> {
        let closing = self.byte(at + 1) == b'/';
        let from = at + 1 + usize::from(closing);
        if !self.byte(from).is_ascii_alphabetic() {
            self.at = at + 1;
            return None;
        }
        let length = self
            .rest(from)
            .bytes()
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b':' | b'.' | b'_'))
            .count();
        let mut tag = Tag {
            start: at,
            end: from + length,
            name: self.text.get(from..from + length).unwrap_or("").to_owned(),
            closing,
            empty: false,
            attributes: Vec::new(),
        };
        let mut here = from + length;
        loop {
            match self.byte(here) {
                b'>' => {
                    tag.end = here + 1;
                    self.at = tag.end;
                    return Some(tag);
                }
                b'<' | 0 if here >= self.text.len() || self.byte(here) == b'<' => {
                    self.at = here;
                    return None;
                }
                b'/' => {
                    tag.empty = self.byte(here + 1) == b'>';
                    here += 1;
                }
                byte if byte.is_ascii_whitespace() || byte == 0 => here += 1,
                _ => match self.one_attribute(here) {
                    Ok((after, attribute)) => {
                        tag.attributes.push(attribute);
                        here = after;
                    }
                    Err(stuck) => {
                        self.at = stuck;
                        return None;
                    }
                },
            }
        }
    }

    /// `Err` holds where to go on when a quote never ends.
    fn one_attribute(&self, at: usize) -> Result<(usize, (String, String)), usize> {
        let bare =
            |byte: &u8| !byte.is_ascii_whitespace() && !matches!(byte, b'=' | b'>' | b'<' | b'/');
        let length = self.rest(at).bytes().take_while(bare).count();
        let key = self
            .text
            .get(at..at + length)
            .unwrap_or("")
            .to_ascii_lowercase();
        let blanks = |from: usize| {
            self.rest(from)
                .bytes()
                .take_while(u8::is_ascii_whitespace)
                .count()
        };
        let mut here = at + length;
        let equals = here + blanks(here);
        if self.byte(equals) != b'=' {
            // A stray `=` or `/` must not stop the walk.
            return Ok((here.max(at + 1), (key, String::new())));
        }
        here = equals + 1;
        here += blanks(here);
        let quote = self.byte(here);
        if quote == b'"' || quote == b'\'' {
            let last = if quote == b'"' {
                self.last_double
            } else {
                self.last_single
            };
            if here >= last {
                return Err(here);
            }
            let length = self.rest(here + 1).find(char::from(quote)).unwrap_or(0);
            let value = self.text.get(here + 1..here + 1 + length).unwrap_or("");
            return Ok((here + length + 2, (key, unescape(value))));
        }
        let length = if quote == b'{' {
            braces(self.rest(here))
        } else {
            self.rest(here)
                .bytes()
                .take_while(|b| !b.is_ascii_whitespace() && *b != b'>' && *b != b'<')
                .count()
        };
        let value = self.text.get(here..here + length).unwrap_or("");
        Ok((here + length.max(1), (key, unescape(value))))
    }
}

/// Length of a JSX value in braces, within 4 KiB; 1 when it does not end there.
fn braces(text: &str) -> usize {
    let mut depth = 0_u32;
    for (at, byte) in text.bytes().enumerate().take(4096) {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    1
}

impl Iterator for Tags<'_> {
    type Item = Tag;

    fn next(&mut self) -> Option<Tag> {
        loop {
            let at = self.at + self.rest(self.at).find('<')?;
            if self.comment(at) {
                continue;
            }
            if let Some(tag) = self.tag(at) {
                return Some(tag);
            }
        }
    }
}

/// The common character references, and numbered ones.
pub(super) fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let end = after.bytes().take(10).position(|b| b == b';');
        let name = end.and_then(|end| after.get(..end));
        if let Some(c) = name.and_then(reference) {
            out.push(c);
            rest = end.and_then(|end| after.get(end + 1..)).unwrap_or("");
        } else {
            out.push('&');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

fn reference(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return char::from_u32(code);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "rarr" => '→',
        "larr" => '←',
        "uarr" => '↑',
        "darr" => '↓',
        "vert" => '|',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::document::Document;
    use super::super::html::read;
    use super::*;

    fn names(text: &str) -> Vec<String> {
        Tags::of(text).map(|tag| tag.name).collect()
    }

    #[test]
    fn tags_with_quotes_comments_and_rubbish() {
        assert_eq!(names("<a href='x>y'><!-- <b> --><c/> 1 < 2 <d"), ["a", "c"]);
        assert!(names("<a x=\"<b y='").is_empty());
        assert_eq!(names("<a <b>"), ["b"]);
        let tag = Tags::of("<IMG Src = a.png alt=\"&lt;&#65;\">")
            .next()
            .unwrap();
        assert_eq!(tag.attribute("src"), Some("a.png"));
        assert_eq!(tag.attribute("alt"), Some("<A"));
    }

    #[test]
    fn many_unclosed_tags_take_one_pass() {
        for piece in [
            "<a ", "<a x='", "<a x=\"", "<!--", "<a x={", "</", "<svg>", "<pre>", "&",
        ] {
            let mut document = Document::default();
            read(&piece.repeat(20_000), Place::Page, &mut document);
        }
    }
}
