//! Whether bytes are a real picture: known format, decodes to its end, large enough, not all one colour.
//! Decoding is bounded in pixels and memory; nothing is rendered or fetched.

use std::io::Cursor;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use image::{AnimationDecoder as _, DynamicImage, ImageFormat, ImageReader, Limits};

use super::images::Target;
use super::svg::{self, Worth};

/// More pixels than this are not decoded.
const MOST_PIXELS: u64 = 64_000_000;
/// Memory that decoding one picture may take, in bytes.
const MOST_MEMORY: u64 = 512 * 1024 * 1024;
/// A picture with a side of this or less shows nothing.
const TINY: u32 = 2;

/// What is wrong with a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) code: &'static str,
    pub(super) refuses: bool,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            refuses: true,
            message: message.into(),
        }
    }

    pub(super) fn noted(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            refuses: false,
            message: message.into(),
        }
    }
}

/// Judges the bytes of the file `name`.
pub(super) fn judge(name: &str, bytes: &[u8]) -> Option<Fault> {
    if bytes.is_empty() {
        return Some(Fault::refused("img.empty", "the file is empty"));
    }
    if bytes.starts_with(b"version https://git-lfs.github.com/spec/") {
        return Some(Fault::noted(
            "img.lfs",
            "the tree holds a Git LFS pointer; the picture itself cannot be judged here",
        ));
    }
    let ending = name
        .rsplit_once('.')
        .map(|(_, ending)| ending.to_ascii_lowercase())
        .unwrap_or_default();
    if ending == "svg" || looks_like_svg(bytes) {
        return judge_svg(bytes)
            .or_else(|| (ending != "svg").then(|| wrong_ending(&ending, "SVG")));
    }
    match image::guess_format(bytes) {
        Ok(format) if decodes(format) => {
            judge_pixels(bytes, format).or_else(|| ending_fault(&ending, format))
        }
        // A known format that this binary does not decode: its mark is all that is checked.
        Ok(_) => None,
        Err(_) if known_otherwise(bytes) => None,
        Err(_) => Some(Fault::refused(
            "img.magic",
            format!(
                "the file is no picture: it starts with {}",
                beginning(bytes)
            ),
        )),
    }
}

/// Judges a `data:` address.
pub(super) fn judge_data(target: &str) -> Option<Fault> {
    let broken = |why: &str| {
        Some(Fault::refused(
            "img.magic",
            format!("the data address {why}"),
        ))
    };
    let Some((kind, data)) = target.get(5..).and_then(|rest| rest.split_once(',')) else {
        return broken("holds no data");
    };
    if !kind.to_ascii_lowercase().starts_with("image/") {
        return broken("is not of an image type");
    }
    let bytes = if kind.to_ascii_lowercase().contains(";base64") {
        let clean: Vec<u8> = data
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        match BASE64_STANDARD.decode(clean) {
            Ok(bytes) => bytes,
            Err(_) => return broken("is not valid base64"),
        }
    } else {
        percent_decoded(data)
    };
    let ending = if kind.contains("svg") {
        "data.svg"
    } else {
        "data"
    };
    judge(ending, &bytes).filter(|fault| fault.code != "img.ext")
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let digits = bytes.as_slice_pair();
        match digits.filter(|_| byte == b'%') {
            Some(value) => {
                out.push(value);
                bytes.nth(1);
            }
            None => out.push(byte),
        }
    }
    out
}

/// Looks ahead for two hex digits.
trait HexPair {
    fn as_slice_pair(&self) -> Option<u8>;
}

impl HexPair for std::str::Bytes<'_> {
    fn as_slice_pair(&self) -> Option<u8> {
        let mut ahead = self.clone();
        let pair = [ahead.next()?, ahead.next()?];
        u8::from_str_radix(std::str::from_utf8(&pair).ok()?, 16).ok()
    }
}

fn looks_like_svg(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(bytes.get(..bytes.len().min(512)).unwrap_or_default())
        .to_lowercase();
    let head = head.trim_start_matches('\u{feff}').trim_start();
    head.starts_with("<svg") || (head.starts_with("<?xml") && head.contains("<svg"))
}

/// What an SVG's worth means for a document.
pub(super) fn worth_fault(worth: Worth) -> Option<Fault> {
    match worth {
        Worth::Drawing | Worth::NoFigure => None,
        Worth::TextOnly => Some(Fault::refused(
            "img.svg-text",
            "the SVG shows words only: no shape but a background",
        )),
        Worth::Empty => Some(Fault::refused("img.svg-empty", "the SVG draws nothing")),
    }
}

fn judge_svg(bytes: &[u8]) -> Option<Fault> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Some(Fault::refused("img.magic", "the SVG is not UTF-8 text"));
    };
    match svg::judge(text) {
        // A file of its own that hides everything is no figure either.
        Ok(Worth::NoFigure) => worth_fault(Worth::Empty),
        Ok(worth) => worth_fault(worth),
        Err(why) => Some(Fault::refused(
            "img.magic",
            format!("the file is no well-formed SVG: {why}"),
        )),
    }
}

fn decodes(format: ImageFormat) -> bool {
    matches!(
        format,
        ImageFormat::Png
            | ImageFormat::Jpeg
            | ImageFormat::Gif
            | ImageFormat::WebP
            | ImageFormat::Bmp
    )
}

/// Formats without a decoder here: AVIF and HEIC, JPEG XL, PDF.
fn known_otherwise(bytes: &[u8]) -> bool {
    bytes.get(4..8) == Some(b"ftyp")
        || bytes.starts_with(&[0xff, 0x0a])
        || bytes.starts_with(b"%PDF-")
        || bytes.starts_with(&[0x1f, 0x8b])
}

fn beginning(bytes: &[u8]) -> String {
    let head: String =
        String::from_utf8_lossy(bytes.get(..bytes.len().min(24)).unwrap_or_default())
            .chars()
            .map(|c| {
                if c.is_control() || c == '\u{fffd}' {
                    '.'
                } else {
                    c
                }
            })
            .collect();
    format!("`{head}`")
}

fn wrong_ending(ending: &str, is: &str) -> Fault {
    Fault::noted(
        "img.ext",
        format!("the name ends in `.{ending}`, the content is {is}"),
    )
}

fn ending_fault(ending: &str, format: ImageFormat) -> Option<Fault> {
    let fits = format.extensions_str().contains(&ending)
        || ending == "data"
        || (format == ImageFormat::Jpeg && ending == "jpe");
    (!fits).then(|| {
        wrong_ending(
            ending,
            format
                .extensions_str()
                .first()
                .copied()
                .unwrap_or("another format"),
        )
    })
}

fn judge_pixels(bytes: &[u8], format: ImageFormat) -> Option<Fault> {
    let size = ImageReader::with_format(Cursor::new(bytes), format).into_dimensions();
    let (width, height) = match size {
        Ok(size) => size,
        Err(error) => return Some(undecodable(&error.to_string())),
    };
    if width <= TINY || height <= TINY {
        return Some(Fault::refused(
            "img.tiny",
            format!("the picture is {width} by {height} pixels"),
        ));
    }
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Some(Fault::noted(
            "img.large",
            format!("the picture is {width} by {height} pixels: too large to decode here"),
        ));
    }
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MOST_MEMORY);
    reader.limits(limits);
    match reader.decode() {
        Err(error) => Some(undecodable(&error.to_string())),
        Ok(_) if format == ImageFormat::Jpeg && !jpeg_ends(bytes) => {
            Some(undecodable("it has no end mark"))
        }
        Ok(picture) if is_one_colour(&picture) && !moves(bytes, format) => Some(Fault::refused(
            "img.blank",
            format!("the picture ({width} by {height} pixels) is of one colour only"),
        )),
        Ok(_) => None,
    }
}

fn undecodable(why: &str) -> Fault {
    Fault::refused(
        "img.truncated",
        format!("the picture does not decode to its end: {why}"),
    )
}

/// The decoder fills what is missing with grey; the end mark after the last scan tells.
fn jpeg_ends(bytes: &[u8]) -> bool {
    let last = |mark: u8| bytes.windows(2).rposition(|pair| pair == [0xff, mark]);
    last(0xd9) > last(0xda)
}

fn is_one_colour(picture: &DynamicImage) -> bool {
    let size = usize::from(picture.color().bytes_per_pixel());
    let alpha = picture.color().has_alpha();
    let mut pixels = picture.as_bytes().chunks_exact(size);
    let Some(first) = pixels.next() else {
        return true;
    };
    let clear = |pixel: &[u8]| alpha && size <= 4 && pixel.last() == Some(&0);
    pixels.all(|pixel| pixel == first || (clear(pixel) && clear(first)))
}

/// An animation may start blank.
fn moves(bytes: &[u8], format: ImageFormat) -> bool {
    const FRAMES: usize = 64;
    if format != ImageFormat::Gif {
        return false;
    }
    let Ok(decoder) = image::codecs::gif::GifDecoder::new(Cursor::new(bytes)) else {
        return false;
    };
    let mut first = None;
    for frame in decoder.into_frames().take(FRAMES).flatten() {
        let picture = frame.into_buffer();
        let colour = picture.pixels().next().copied();
        if picture.pixels().any(|pixel| Some(*pixel) != colour)
            || *first.get_or_insert(colour) != colour
        {
            return true;
        }
    }
    false
}

/// What the place a target leads to means by itself; files are judged by their bytes.
pub(super) fn place_fault(target: &str, place: &Target) -> Option<Fault> {
    let shown: String = target.chars().take(120).collect();
    match place {
        Target::File { .. } | Target::Data(_) | Target::Other | Target::Remote(true) => None,
        Target::OtherCase(real) => Some(Fault::refused(
            "img.case",
            format!(
                "`{shown}` differs in case from the file `{real}`: it breaks on systems that tell case apart"
            ),
        )),
        Target::Missing => Some(Fault::refused(
            "img.missing",
            format!("`{shown}` is not in the delivered tree"),
        )),
        Target::Escapes => Some(Fault::refused(
            "img.escape",
            format!("`{shown}` leads out of the repository"),
        )),
        Target::Local => Some(Fault::refused(
            "img.local",
            format!("`{shown}` is a path on the author's machine"),
        )),
        Target::Remote(false) => Some(Fault::noted(
            "img.remote",
            format!("`{shown}` lies on another machine and is no part of the delivery"),
        )),
        Target::Computed => Some(Fault::noted(
            "img.computed",
            format!("`{shown}` is computed when the site is built and cannot be judged here"),
        )),
    }
}
