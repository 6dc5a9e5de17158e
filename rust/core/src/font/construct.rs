//! Glyphs that are built rather than drawn, so that they join from cell to cell: box drawing (U+2500 to U+257F),
//! block elements (U+2580 to U+259F) and braille (U+2801 to U+28FF).

use super::raster::{Coverage, Pen, Point};
use crate::atlas::{Cell, Ink};

/// The arms of the characters from U+2500: up, right, down, left; 0 none, 1 light, 2 heavy, 3 double.
/// From the character names of the Unicode standard. Dashes, arcs and diagonals have entries of their own.
const ARMS: [&str; 128] = [
    "0101", "0202", "1010", "2020", "h31", "h32", "v31", "v32", "h41", "h42", "v41", "v42", "0110", "0210",
    "0120", "0220", "0011", "0012", "0021", "0022", "1100", "1200", "2100", "2200", "1001", "1002", "2001",
    "2002", "1110", "1210", "2110", "1120", "2120", "2210", "1220", "2220", "1011", "1012", "2011", "1021",
    "2021", "2012", "1022", "2022", "0111", "0112", "0211", "0212", "0121", "0122", "0221", "0222", "1101",
    "1102", "1201", "1202", "2101", "2102", "2201", "2202", "1111", "1112", "1211", "1212", "2111", "1121",
    "2121", "2112", "2211", "1122", "1221", "2212", "1222", "2122", "2221", "2222", "h21", "h22", "v21",
    "v22", "0303", "3030", "0310", "0130", "0330", "0013", "0031", "0033", "1300", "3100", "3300", "1003",
    "3001", "3003", "1310", "3130", "3330", "1013", "3031", "3033", "0313", "0131", "0333", "1303", "3101",
    "3303", "1313", "3131", "3333", "ard", "ald", "alu", "aru", "d1", "d2", "d3", "0001", "1000", "0100",
    "0010", "0002", "2000", "0200", "0020", "0201", "1020", "0102", "2010",
];

/// Every built glyph with its coverage in a cell, by code point.
pub(crate) fn glyphs(cell: Cell, ink: Ink) -> impl Iterator<Item = (u32, Vec<u8>)> {
    let boxes = (0..128).map(move |i| (0x2500 + i, box_drawing(cell, ARMS[i as usize])));
    let blocks = (0x2580..0x25A0).map(move |code| (code, block(cell, ink, code)));
    let braille = (1..256).map(move |dots| (0x2800 + dots, braille(cell, dots)));
    boxes.chain(blocks).chain(braille).map(|(code, coverage)| (code, coverage.pixels()))
}

/// A rectangle in whole pixels; what lies outside the cell is dropped.
fn area(coverage: &mut Coverage, left: i32, top: i32, right: i32, bottom: i32) {
    coverage.rectangle(f64::from(left), f64::from(top), f64::from(right), f64::from(bottom));
}

fn box_drawing(cell: Cell, kind: &str) -> Coverage {
    let mut out = Coverage::new(cell);
    let (w, h) = (i32::from(cell.width), i32::from(cell.height));
    let light = 1.max((w + 2) / 8);
    let heavy = light + 1.max(light);
    // The band of a line of some thickness about the middle of the cell.
    let band = |size: i32, thick: i32| ((size - thick) / 2, (size - thick) / 2 + thick);
    let thick = |weight: u8| match weight {
        b'1' => light,
        b'2' => heavy,
        _ => 3 * light,
    };
    let bytes = kind.as_bytes();
    match bytes {
        [b'h' | b'v', count, weight] => {
            let (along, across) = if bytes[0] == b'h' { (w, h) } else { (h, w) };
            let (low, high) = band(across, thick(*weight));
            let count = i32::from(count - b'0');
            for i in 0..count {
                // Each dash leaves a gap after it, of a pixel at least.
                let (from, to) = (along * i / count, along * (i + 1) / count);
                let to = to - 1.max((to - from) / 4);
                if bytes[0] == b'h' {
                    area(&mut out, from, low, to, high);
                } else {
                    area(&mut out, low, from, high, to);
                }
            }
        }
        [b'a', across, down] => {
            let ((x, x_end), (y, y_end)) = (band(w, light), band(h, light));
            let middle = Point { x: f64::from(x + x_end) / 2.0, y: f64::from(y + y_end) / 2.0 };
            let side = if *across == b'r' { f64::from(w) } else { 0.0 };
            let end = if *down == b'd' { f64::from(h) } else { 0.0 };
            let reach = (middle.x - side).abs().min((middle.y - end).abs());
            let toward = |from: f64, to: f64| if to > from { from + reach } else { from - reach };
            let path = [
                (Point { x: side, y: middle.y }, false),
                (Point { x: toward(middle.x, side), y: middle.y }, false),
                (middle, true),
                (Point { x: middle.x, y: toward(middle.y, end) }, false),
                (Point { x: middle.x, y: end }, false),
            ];
            out.stroke(&path, Pen { x: f64::from(light), y: f64::from(light) });
        }
        [b'd', which] => {
            let (right, bottom) = (f64::from(w), f64::from(h));
            let pen = Pen { x: f64::from(light), y: f64::from(light) };
            if which & 1 != 0 {
                out.stroke(&[(Point { x: right, y: 0.0 }, false), (Point { x: 0.0, y: bottom }, false)], pen);
            }
            if which & 2 != 0 {
                out.stroke(&[(Point { x: 0.0, y: 0.0 }, false), (Point { x: right, y: bottom }, false)], pen);
            }
        }
        &[up, right, down, left] => {
            let widest = |a: u8, b: u8| thick(a.max(b).max(b'1'));
            // A line reaches to the far edge of the lines that it meets.
            let (x, x_end) = band(w, widest(up, down));
            let (y, y_end) = band(h, widest(left, right));
            for double in [true, false] {
                let drawn = |weight: u8| weight != b'0' && (weight == b'3') == double;
                // A single line stops at the near side of a double one that it does not cross.
                let crossing = |a: u8, b: u8| a == b'3' || b == b'3';
                let (near_x, near_y) = (!double && crossing(up, down), !double && crossing(left, right));
                let (l, r) = if near_x { (x_end - light, x + light) } else { (x, x_end) };
                let (t, b) = if near_y { (y_end - light, y + light) } else { (y, y_end) };
                let ((ul, ur), (dl, dr)) = (band(w, thick(up)), band(w, thick(down)));
                let ((lt, lb), (rt, rb)) = (band(h, thick(left)), band(h, thick(right)));
                if drawn(up) {
                    area(&mut out, ul, 0, ur, b);
                }
                if drawn(down) {
                    area(&mut out, dl, t, dr, h);
                }
                if drawn(left) {
                    area(&mut out, 0, lt, r, lb);
                }
                if drawn(right) {
                    area(&mut out, l, rt, w, rb);
                }
                if double {
                    hollow(&mut out, (w, h), light, [up, right, down, left]);
                }
            }
        }
        _ => unreachable!("a table of this module"),
    }
    out
}

/// Opens the inside of double lines, from the middle outwards.
fn hollow(out: &mut Coverage, (w, h): (i32, i32), light: i32, arms: [u8; 4]) {
    let [up, right, down, left] = arms.map(|weight| weight == b'3');
    let (x, y) = ((w - 3 * light) / 2 + light, (h - 3 * light) / 2 + light);
    // The middle stays where it is part of a single line: one that crosses, or one that a double line ends at.
    let crossed = |a: u8, b: u8| a != b'0' && b != b'0';
    let skip_x = if !up && !down && (left != right || crossed(arms[0], arms[2])) { light } else { 0 };
    let skip_y = if !left && !right && (up != down || crossed(arms[1], arms[3])) { light } else { 0 };
    let mut clear = |left: i32, top: i32, right: i32, bottom: i32| {
        let [left, top, right, bottom] = [left, top, right, bottom].map(|edge| edge.max(0) as usize);
        out.clear(left, top, right, bottom);
    };
    if up {
        clear(x, 0, x + light, y + light - skip_y);
    }
    if down {
        clear(x, y + skip_y, x + light, h);
    }
    if left {
        clear(0, y, x + light - skip_x, y + light);
    }
    if right {
        clear(x + skip_x, y, w, y + light);
    }
}

fn block(cell: Cell, ink: Ink, code: u32) -> Coverage {
    let mut out = Coverage::new(cell);
    let (w, h) = (i32::from(cell.width), i32::from(cell.height));
    let (mid_x, mid_y) = ((w + 1) / 2, (h + 1) / 2);
    let part = |size: i32, eighths: i32| (size * eighths + 4) / 8;
    match code {
        0x2580 => area(&mut out, 0, 0, w, mid_y),
        0x2581..=0x2587 => area(&mut out, 0, h - part(h, code as i32 - 0x2580).max(1), w, h),
        0x2588 => {
            // A light lower edge keeps it apart from the solid cell of the marks.
            let edge = if ink == Ink::Grey { 0.25 } else { 0.0 };
            out.rectangle(0.0, 0.0, f64::from(w), f64::from(h - 1) + edge);
        }
        0x2589..=0x258F => area(&mut out, 0, 0, part(w, 0x2590 - code as i32).max(1), h),
        0x2590 => area(&mut out, mid_x, 0, w, h),
        0x2591..=0x2593 => {
            for y in 0..h {
                for x in 0..w {
                    let inked = match code {
                        0x2591 => (x + 2 * y) % 4 == 0,
                        0x2592 => (x + y) % 2 == 0,
                        _ => (x + 2 * y) % 4 != 0,
                    };
                    if inked {
                        area(&mut out, x, y, x + 1, y + 1);
                    }
                }
            }
        }
        0x2594 => area(&mut out, 0, 0, w, part(h, 1).max(1)),
        0x2595 => area(&mut out, w - part(w, 1).max(1), 0, w, h),
        _ => {
            // Quadrants: upper left, upper right, lower left, lower right.
            const QUADRANTS: [u8; 10] =
                [0b0010, 0b0001, 0b1000, 0b1011, 0b1001, 0b1110, 0b1101, 0b0100, 0b0110, 0b0111];
            let set = QUADRANTS[code as usize - 0x2596];
            for (bit, x, y) in [(8, 0, 0), (4, mid_x, 0), (2, 0, mid_y), (1, mid_x, mid_y)] {
                if set & bit != 0 {
                    let (right, bottom) = (if x == 0 { mid_x } else { w }, if y == 0 { mid_y } else { h });
                    area(&mut out, x, y, right, bottom);
                }
            }
        }
    }
    out
}

/// Dots 1, 2, 3, 7 stand in the left column from above, 4, 5, 6, 8 in the right one.
fn braille(cell: Cell, dots: u32) -> Coverage {
    const PLACES: [(i32, i32); 8] = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
    let mut out = Coverage::new(cell);
    let (w, h) = (i32::from(cell.width), i32::from(cell.height));
    let size = (w / 4).min(h / 6).max(1);
    for (bit, (column, row)) in PLACES.iter().enumerate() {
        if dots >> bit & 1 == 1 {
            let x = (2 * column + 1) * w / 4 - size / 2;
            let y = (2 * row + 1) * h / 8 - size / 2;
            area(&mut out, x, y, x + size, y + size);
        }
    }
    out
}
