//! File names in a note, with their places.

use std::ops::Range;

use super::words::is_cjk;

/// A file name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) range: Range<usize>,
    pub(super) path: String,
}

/// File names of a text, and the ranges that hold no claim's number: names, addresses, digests.
pub(super) fn all(text: &str) -> (Vec<Named>, Vec<Range<usize>>) {
    let mut named = Vec::new();
    let mut masks = Vec::new();
    for range in tokens(text) {
        let token = text.get(range.clone()).unwrap_or_default();
        if token.contains("://") || is_digest(token) {
            masks.push(range);
        } else if let Some(inner) = file_in(token) {
            let path = token.get(inner.clone()).unwrap_or_default().to_owned();
            let range = range.start + inner.start..range.start + inner.end;
            masks.push(range.clone());
            named.push(Named { range, path });
        }
    }
    (named, masks)
}

fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let ends =
            c.is_whitespace() || ",，。；;！？!?：`'\"“”‘’()（）[]{}<>《》【】|、*=".contains(c);
        if ends {
            if start < at {
                found.push(start..at);
            }
            start = at + c.len_utf8();
        }
    }
    if start < text.len() {
        found.push(start..text.len());
    }
    found
}

fn is_digest(token: &str) -> bool {
    let token = token.trim_end_matches(['.', ':']);
    let letters = token.chars().any(|c| c.is_ascii_alphabetic());
    let digits = token.chars().any(|c| c.is_ascii_digit());
    token.len() >= 7 && letters && digits && token.chars().all(|c| c.is_ascii_hexdigit())
}

/// The part of a token that names a file.
fn file_in(token: &str) -> Option<Range<usize>> {
    let trimmed = token.trim_end_matches(['.', ':', '…']);
    let start = glued_words(trimmed);
    let path = trimmed.get(start..)?;
    is_file(path).then_some(start..trimmed.len())
}

/// Bytes of Chinese words glued to the front of a name: `已写入docs/a.md`.
fn glued_words(token: &str) -> usize {
    let verbs = [
        "写入", "创建", "新增", "修改", "更新", "添加", "删除", "生成", "文件", "到", "在", "为",
        "了", "将", "把",
    ];
    let lead: String = token.chars().take_while(|c| is_cjk(*c)).collect();
    let cut = verbs
        .iter()
        .filter_map(|verb| lead.rfind(verb).map(|at| at + verb.len()))
        .max()
        .unwrap_or(0);
    if cut < token.len() { cut } else { 0 }
}

fn is_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    if matches!(
        name,
        "Makefile" | "Dockerfile" | "README" | "LICENSE" | "CHANGELOG"
    ) {
        return true;
    }
    let Some((stem, extension)) = name.rsplit_once('.') else {
        return false;
    };
    let named = stem.chars().any(|c| c.is_alphabetic() || c == '_')
        || (stem.is_empty() && path.contains('/'))
        || (path.contains('/') && !stem.is_empty());
    let extension_ok = (1..=10).contains(&extension.len())
        && extension.starts_with(|c: char| c.is_ascii_alphabetic())
        && extension.chars().all(|c| c.is_ascii_alphanumeric());
    let domain = !path.contains('/') && matches!(extension, "com" | "org" | "net" | "io" | "dev");
    let short_form = matches!(path, "e.g" | "i.e" | "a.m" | "p.m");
    named && extension_ok && !domain && !short_form
}
