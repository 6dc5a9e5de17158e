//! The font "fiche": stroke skeletons, hinted to a cell and rasterised.
//!
//! `fonts/fiche.txt` holds the skeletons on a unit grid (its format is told in `fonts/README.md`). Here they are
//! read, their key lines snapped to the pixels of a cell, and their strokes turned into coverage by [`raster`].
//! Only `+ - * /`, `sqrt` and comparisons of `f64` are used: IEEE 754 fixes their results, so every machine draws
//! the same pixels.

mod raster;

use std::sync::OnceLock;

use crate::atlas::{Cell, Ink};
use raster::{Coverage, Pen, Point};

/// The skeleton file, compiled in.
const SOURCE: &str = include_str!("../../../fonts/fiche.txt");

/// What a skeleton stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    Code(u32),
    Newline,
    Tab,
    Hard,
}

/// Which lines of the unit grid are fixed to pixels vertically.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Zone {
    /// Lower case: descender, baseline, x-height, ascender.
    Low,
    /// Capitals, digits, signs: descender, baseline, cap height.
    Cap,
}

/// How the unit width 0..6 lies in the cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    /// Side stems on the edges of the body.
    Body,
    /// Centred on the middle pixel: glyphs with one stem.
    Mid,
    /// A little wider than the body: three stems.
    Wide,
    /// The whole cell.
    Full,
}

#[derive(Clone, Debug)]
enum Shape {
    /// An open or closed path of points; `true` marks a control point of a quadratic curve.
    Stroke(Vec<(Point, bool)>),
    /// A filled polygon, grown by half a stroke.
    Fill(Vec<Point>),
    /// A square dot, heavier than a stroke.
    Dot(Point),
}

#[derive(Clone, Debug)]
struct Part {
    shape: Shape,
    heavy: bool,
    /// Drawn only where the counter has room and the ink is grey.
    roomy: bool,
}

/// One skeleton.
#[derive(Clone, Debug)]
pub(crate) struct Skeleton {
    pub(crate) name: Name,
    zone: Zone,
    fit: Fit,
    parts: Vec<Part>,
}

/// The skeletons in the order of the file.
pub(crate) fn skeletons() -> &'static [Skeleton] {
    static FONT: OnceLock<Vec<Skeleton>> = OnceLock::new();
    FONT.get_or_init(|| {
        let lines = SOURCE.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("# "));
        lines.filter(|line| *line != "#").map(parse).collect()
    })
}

/// Reads one line of the skeleton file. The file is compiled in and read whole by the tests, so a mistake in it
/// is a mistake in the program.
fn parse(line: &str) -> Skeleton {
    let bad = || -> ! { panic!("fonts/fiche.txt: {line}") };
    let Some((head, strokes)) = line.split_once(" :: ") else { bad() };
    let mut words = head.split_whitespace();
    let name = match words.next() {
        Some("newline") => Name::Newline,
        Some("tab") => Name::Tab,
        Some("hard") => Name::Hard,
        Some(hex) => match u32::from_str_radix(hex, 16) {
            Ok(code) if words.next().and_then(|c| c.chars().next()).map(u32::from) == Some(code) => Name::Code(code),
            _ => bad(),
        },
        None => bad(),
    };
    let (mut zone, mut fit) = (Zone::Cap, Fit::Body);
    for word in words {
        match word {
            "low" => zone = Zone::Low,
            "cap" => zone = Zone::Cap,
            "mid" => fit = Fit::Mid,
            "wide" => fit = Fit::Wide,
            "full" => fit = Fit::Full,
            _ => bad(),
        }
    }
    let parts = strokes.split(';').map(|part| parse_part(part.trim()).unwrap_or_else(|| bad())).collect();
    Skeleton { name, zone, fit, parts }
}

fn parse_part(text: &str) -> Option<Part> {
    let point = |word: &str| -> Option<Point> {
        let (x, y) = word.split_once(',')?;
        Some(Point { x: x.parse().ok()?, y: y.parse().ok()? })
    };
    let (roomy, text) = text.strip_prefix('?').map_or((false, text), |rest| (true, rest));
    if let Some(dot) = text.strip_prefix('*') {
        return Some(Part { shape: Shape::Dot(point(dot)?), heavy: false, roomy });
    }
    let (heavy, text) = text.strip_prefix("heavy ").map_or((false, text), |rest| (true, rest));
    if let Some(rest) = text.strip_prefix("fill ") {
        let corners = rest.split_whitespace().map(point).collect::<Option<_>>()?;
        return Some(Part { shape: Shape::Fill(corners), heavy, roomy });
    }
    let mut path = Vec::new();
    for word in text.split_whitespace() {
        let (control, word) = word.strip_prefix('~').map_or((false, word), |rest| (true, rest));
        path.push((point(word)?, control));
    }
    let ends_on_curve = path.len() >= 2 && !path[0].1 && !path[path.len() - 1].1;
    ends_on_curve.then_some(Part { shape: Shape::Stroke(path), heavy, roomy })
}

/// The key lines of a cell in pixels, y downwards, and its pen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Metrics {
    cell: Cell,
    ink: Ink,
    /// Left and right edge of the body.
    left: f64,
    right: f64,
    /// Upper edge of capitals and of lower case, lower edge of the baseline and of descenders.
    cap: f64,
    low: f64,
    base: f64,
    desc: f64,
    pen: Pen,
}

impl Metrics {
    pub(crate) fn new(cell: Cell, ink: Ink) -> Metrics {
        let (w, h) = (i32::from(cell.width), i32::from(cell.height));
        let gap = (w + 1) / 4;
        // A cell far taller or wider than letters are gets space, not stretched letters.
        let tall = h.min((w * 23 + 5) / 10);
        let body = (w - gap).min(h * 3 / 4);
        let left = (w - body) / 2;
        let desc = ((tall * 19 + 50) / 100).max(1);
        let cap = ((tall * 7 + 5) / 10).max(5).min(h - 1);
        let low = ((cap * 71 + 50) / 100).max(4);
        let lead = h - cap - desc;
        let base = h - desc - (lead / 3).max(0);
        let weight = f64::from(tall.min(w * 2) - 10);
        let pen = match ink {
            Ink::Grey => Pen { x: (1.0 + weight * 0.06).max(0.9), y: (1.0 + weight * 0.05).max(0.9) },
            Ink::Mono => {
                let stem = if w >= 12 && tall >= 22 { 2.0 } else { 1.0 };
                Pen { x: stem, y: stem }
            }
        };
        Metrics {
            cell,
            ink,
            left: f64::from(left),
            right: f64::from(left + body),
            cap: f64::from(base - cap),
            low: f64::from(base - low),
            base: f64::from(base),
            desc: f64::from(base + desc),
            pen,
        }
    }

    /// The unit lines that are fixed, with the pixel their strokes are centred on.
    fn columns(&self, fit: Fit) -> [(f64, f64); 2] {
        let (w, half) = (f64::from(self.cell.width), self.pen.x / 2.0);
        let gap = w - (self.right - self.left);
        let (left, right) = match fit {
            Fit::Body => (self.left, self.right),
            Fit::Mid => {
                let shift = if (self.right - self.left) % 2.0 == 0.0 { 0.5 } else { 0.0 };
                (self.left + shift, self.right + shift)
            }
            Fit::Wide => match self.ink {
                Ink::Grey => ((self.left - gap * 0.25).max(0.0), (self.right + gap * 0.5).min(w)),
                Ink::Mono => (self.left, self.right + if (self.right - self.left) % 2.0 == 0.0 { 1.0 } else { 0.0 }),
            },
            Fit::Full => (0.0, w),
        };
        [(0.0, left + half), (6.0, right - half)]
    }

    fn rows(&self, zone: Zone) -> Vec<(f64, f64)> {
        let half = self.pen.y / 2.0;
        let mut rows = vec![(-3.0, self.desc - half), (0.0, self.base - half)];
        if zone == Zone::Low {
            rows.push((6.0, self.low + half));
        }
        rows.push((9.0, self.cap + half));
        rows
    }
}

/// A piecewise linear way from units to pixels.
struct Axis {
    anchors: Vec<(f64, f64)>,
}

impl Axis {
    /// `fixed` lines keep their place; every line of `stems` is moved so that the stroke's edge falls on a pixel's.
    fn new(fixed: &[(f64, f64)], stems: &[f64], width: f64) -> Axis {
        let mut axis = Axis { anchors: fixed.to_vec() };
        let mut snapped = Vec::new();
        for &unit in stems {
            if fixed.iter().any(|anchor| (anchor.0 - unit).abs() < 0.3) {
                continue;
            }
            let at = axis.at(unit);
            let to = (at - width / 2.0 + 0.5).floor() + width / 2.0;
            let crowded = axis.anchors.iter().any(|anchor| (anchor.1 - to).abs() < 1.0);
            if !crowded && !snapped.iter().any(|&(u, p): &(f64, f64)| u != unit && (p - to).abs() < 1.0) {
                snapped.push((unit, to));
            }
        }
        axis.anchors.extend(snapped);
        axis.anchors.sort_by(|a, b| a.0.total_cmp(&b.0));
        axis.anchors.dedup_by(|a, b| a.0 == b.0);
        axis
    }

    fn at(&self, unit: f64) -> f64 {
        let last = self.anchors.len() - 2;
        let i = self.anchors[1..=last].iter().take_while(|anchor| anchor.0 <= unit).count();
        let ((u0, p0), (u1, p1)) = (self.anchors[i], self.anchors[i + 1]);
        p0 + (unit - u0) * (p1 - p0) / (u1 - u0)
    }
}

impl Skeleton {
    /// The skeleton's coverage in a cell.
    pub(crate) fn draw(&self, metrics: &Metrics) -> Coverage {
        let (mut across, mut down) = (Vec::new(), Vec::new());
        for part in &self.parts {
            let Shape::Stroke(path) = &part.shape else { continue };
            for pair in path.windows(2) {
                let [(a, from_control), (b, to_control)] = [pair[0], pair[1]];
                if a.x == b.x && !from_control && !to_control {
                    across.push(a.x);
                }
                if a.y == b.y {
                    down.push(a.y);
                }
            }
        }
        let pen = metrics.pen;
        let columns = Axis::new(&metrics.columns(self.fit), &across, pen.x);
        let rows = Axis::new(&metrics.rows(self.zone), &down, pen.y);
        let place = |p: Point| Point { x: columns.at(p.x), y: rows.at(p.y) };
        let room = columns.at(6.0) - columns.at(0.0) - pen.x >= 3.0 && metrics.ink == Ink::Grey;

        let mut coverage = Coverage::new(metrics.cell);
        for part in self.parts.iter().filter(|part| !part.roomy || room) {
            let pen = if part.heavy { pen.scaled(1.3) } else { pen };
            match &part.shape {
                Shape::Stroke(path) => {
                    let path: Vec<_> = path.iter().map(|&(p, control)| (place(p), control)).collect();
                    coverage.stroke(&path, pen);
                }
                Shape::Fill(corners) => {
                    let corners: Vec<_> = corners.iter().map(|&p| place(p)).collect();
                    coverage.fill(&corners);
                    let outline: Vec<_> = corners.iter().chain(&corners[..1]).map(|&p| (p, false)).collect();
                    coverage.stroke(&outline, pen);
                }
                Shape::Dot(p) => {
                    let at = place(*p);
                    let size = |stroke: f64| (stroke * 3.2).floor() / 2.0;
                    let (w, h) = match metrics.ink {
                        Ink::Grey => (size(pen.x), size(pen.y)),
                        Ink::Mono => ((pen.x * 2.0).min(metrics.right - metrics.left - 2.0), pen.y * 2.0),
                    };
                    let left = (at.x - w / 2.0 + 0.5).floor();
                    let bottom = (at.y + pen.y / 2.0 + 0.5).floor();
                    coverage.rectangle(left, bottom - h, left + w, bottom);
                }
            }
        }
        coverage
    }
}

/// The darkness, in samples covered, from which a pixel is one level darker.
fn borders(ink: Ink) -> &'static [u8] {
    match ink {
        Ink::Grey => &[10, 28, 46],
        Ink::Mono => &[27],
    }
}

/// The levels of a coverage: 0 is black. Where `free` refuses them, the pixels whose coverage lies nearest to
/// a border between two levels pass over it, one after the other, alone first and then in pairs, until `free`
/// agrees. The last candidate is returned in any case.
pub(crate) fn levels(coverage: &[u8], ink: Ink, free: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let borders = borders(ink);
    let white = ink.levels() - 1;
    let mut levels: Vec<u8> =
        coverage.iter().map(|&c| white - borders.iter().filter(|&&border| c >= border).count() as u8).collect();
    if free(&levels) {
        return levels;
    }
    // For each pixel the nearest border: how far, which pixel, and the level beyond.
    let mut moves: Vec<(u8, usize, u8)> = Vec::new();
    for (pixel, &c) in coverage.iter().enumerate() {
        for (i, &border) in borders.iter().enumerate() {
            let beyond = if c >= border { white - i as u8 } else { white - i as u8 - 1 };
            moves.push((c.abs_diff(border), pixel, beyond));
        }
    }
    moves.sort_unstable();
    for first in 0..moves.len() {
        for second in 0..=first {
            let before = levels.clone();
            levels[moves[first].1] = moves[first].2;
            levels[moves[second].1] = moves[second].2;
            if free(&levels) {
                return levels;
            }
            levels = before;
        }
    }
    levels
}
