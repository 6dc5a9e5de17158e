//! What both directions of the page grammar share: the segments, the words of
//! bars, and the wording of the legend. See `docs/page-format.md`.
use std::fmt;

/// Version of the page grammar, written into each page's text chunk.
pub const GRAMMAR: u32 = 1;

/// Most characters of a tool's name in a bar.
pub(crate) const NAME_MAX: usize = 64;

/// Spaces up to this many stand as blanks; longer runs are counted.
pub(crate) const BLANKS_MAX: u64 = 3;

/// Line breaks and tabs up to this many stand as single marks; longer runs are counted.
pub(crate) const MARKS_MAX: u64 = 2;

/// The word that begins every legend; the page's number follows.
pub(crate) const LEGEND_PAGE: &str = "page ";

pub(crate) const LEGEND_TURN: &str = "turn ";
pub(crate) const LEGEND_TURNS: &str = "turns ";
pub(crate) const LEGEND_BREAK: &str = " line break";
pub(crate) const LEGEND_TAB: &str = " tab";
pub(crate) const LEGEND_SPACES: (&str, &str) = ("8", " 8 spaces");
pub(crate) const LEGEND_BREAKS: (&str, &str) = ("3", " 3 line breaks");
pub(crate) const LEGEND_BAR: (&str, &str) = (" 12 user ", " a turn begins");
pub(crate) const LEGEND_ESCAPE: (&str, &str) = ("<1b>", " code point");
pub(crate) const LEGEND_WHAT: &str = "earlier turns of this conversation, for reading";
/// Blank cells between two items of the legend.
pub(crate) const LEGEND_GAP: usize = 2;

/// Whether a byte may stand in a tool's name.
pub(crate) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte)
}

/// Who or what speaks after a turn bar.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind<'a> {
    User,
    Assistant,
    System,
    /// A tool call; the name is 1 to 64 of `[A-Za-z0-9_.:-]`.
    Call(&'a str),
    ResultOk,
    ResultError,
}

impl<'a> Kind<'a> {
    /// Parses the words of a bar: `user`, `call NAME`, `result ok` and so on.
    pub fn parse(words: &'a str) -> Option<Kind<'a>> {
        Some(match words {
            "user" => Kind::User,
            "assistant" => Kind::Assistant,
            "system" => Kind::System,
            "result ok" => Kind::ResultOk,
            "result error" => Kind::ResultError,
            _ => {
                let name = words.strip_prefix("call ")?;
                let sound = !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(is_name_byte);
                return sound.then_some(Kind::Call(name));
            }
        })
    }
}

impl fmt::Display for Kind<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::User => out.write_str("user"),
            Kind::Assistant => out.write_str("assistant"),
            Kind::System => out.write_str("system"),
            Kind::Call(name) => write!(out, "call {name}"),
            Kind::ResultOk => out.write_str("result ok"),
            Kind::ResultError => out.write_str("result error"),
        }
    }
}

/// What is drawn: bars and text, in normal form (no empty text, no two texts side by side).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Segment<'a> {
    Bar {
        turn: u64,
        kind: Kind<'a>,
    },
    /// Generalised UTF-8: a lone surrogate is three bytes, and two of them are never joined.
    Text(&'a [u8]),
}

/// What is read back: the owning form of [`Segment`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    Bar { turn: u64, kind: String },
    Text(Vec<u8>),
}

/// How line breaks are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Lines {
    /// A mark in the flow of cells.
    #[default]
    Flow,
    /// A mark after which the rest of the row is padding.
    Hard,
}

/// A place in the source: a segment, and a code point of its text (0 for a bar).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Position {
    pub segment: usize,
    pub offset: usize,
}

/// Decodes one code point of generalised UTF-8: its value and length in bytes.
///
/// Strict but for surrogates: no overlong forms, nothing above U+10FFFF.
pub(crate) fn decode(bytes: &[u8]) -> Option<(u32, usize)> {
    let tail = |at: usize| match bytes.get(at) {
        Some(&byte) if byte & 0xC0 == 0x80 => Some(u32::from(byte & 0x3F)),
        _ => None,
    };
    let lead = u32::from(*bytes.first()?);
    let (value, length, least) = match lead {
        0x00..=0x7F => return Some((lead, 1)),
        0xC0..=0xDF => ((lead & 0x1F) << 6 | tail(1)?, 2, 0x80),
        0xE0..=0xEF => ((lead & 0x0F) << 12 | tail(1)? << 6 | tail(2)?, 3, 0x800),
        0xF0..=0xF7 => ((lead & 0x07) << 18 | tail(1)? << 12 | tail(2)? << 6 | tail(3)?, 4, 0x1_0000),
        _ => return None,
    };
    (least..=0x10_FFFF).contains(&value).then_some((value, length))
}

/// Appends a code point as generalised UTF-8. The caller keeps it at or under U+10FFFF.
pub(crate) fn encode(code_point: u32, out: &mut Vec<u8>) {
    let tail = |shift: u32| 0x80 | (code_point >> shift & 0x3F) as u8;
    match code_point {
        0..=0x7F => out.push(code_point as u8),
        0x80..=0x7FF => out.extend([0xC0 | (code_point >> 6) as u8, tail(0)]),
        0x800..=0xFFFF => out.extend([0xE0 | (code_point >> 12) as u8, tail(6), tail(0)]),
        _ => out.extend([0xF0 | (code_point >> 18) as u8, tail(12), tail(6), tail(0)]),
    }
}

/// Code points in sound generalised UTF-8.
pub(crate) fn count(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_point_is_decoded_as_encoded() {
        let mut bytes = Vec::new();
        for code_point in 0..=0x10_FFFF {
            bytes.clear();
            encode(code_point, &mut bytes);
            assert_eq!(decode(&bytes), Some((code_point, bytes.len())));
            if let Some(scalar) = char::from_u32(code_point) {
                assert_eq!(bytes, scalar.to_string().as_bytes());
            }
        }
    }

    #[test]
    fn malformed_bytes_are_refused() {
        for bad in [
            &b"\x80"[..],
            b"\xc0\x80",
            b"\xc3",
            b"\xe0\x80\x80",
            b"\xf4\x90\x80\x80",
            b"\xff",
            b"",
            b"\xe2\x82a",
        ] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn words_of_bars_are_parsed_as_displayed() {
        let longest = "n".repeat(64);
        for kind in [
            Kind::User,
            Kind::Assistant,
            Kind::System,
            Kind::ResultOk,
            Kind::ResultError,
            Kind::Call("a.b:c-D_9"),
            Kind::Call(&longest),
        ] {
            assert_eq!(Kind::parse(&kind.to_string()), Some(kind));
        }
        let too_long = format!("call {}", "n".repeat(65));
        for bad in
            ["", "User", "user ", "call", "call ", "call a b", "call é", "result", "result maybe", &too_long]
        {
            assert_eq!(Kind::parse(bad), None, "{bad:?}");
        }
    }
}
