//! The font "fiche": stroke skeletons, hinted to a cell and rasterised.
//!
//! `fonts/fiche.txt` holds the skeletons on a unit grid (its format is told in `fonts/README.md`). Here they are
//! read, their key lines snapped to the pixels of a cell, and their strokes turned into coverage by [`raster`].
//! Only `+ - * /`, `sqrt` and comparisons of `f64` are used: IEEE 754 fixes their results, so every machine draws
//! the same pixels.

pub(crate) mod construct;
mod raster;

use std::sync::OnceLock;

use crate::atlas::{Cell, Ink};
use raster::{Coverage, Pen, Point};

/// The skeleton file, compiled in.
const SOURCE: &str = include_str!("../../../fonts/fiche.txt");

/// The pen of a heavy part, of the slash in the zero, and of three stems that fill a cell, against a stroke's.
const HEAVY: f64 = 1.3;
const SLASH: f64 = 0.7;
const CRAMMED: f64 = 0.75;

/// The counter, in pixels, that the zero needs for its slash: in three pixels it is read as an `e`.
const ROOM: f64 = 3.5;

/// What a skeleton stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Name {
    Code(u32),
    Newline,
    Tab,
    Hard,
    /// A part of composed letters, never drawn alone.
    Accent(&'static str),
}

/// Which lines of the unit grid are fixed to pixels vertically.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Zone {
    /// Lower case: descender, baseline, x-height, ascender.
    Low,
    /// Capitals, digits, signs: descender, baseline, cap height.
    Cap,
    /// The room above a letter, from 0 to 2.
    Accent,
}

/// How the unit width 0..6 lies in the cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fit {
    /// Side stems on the edges of the body.
    Body,
    /// Centred on the middle pixel: glyphs with one stem.
    Mid,
    /// On an odd number of pixels, a little wider than the body if need be: diagonals that meet in the middle.
    Odd,
    /// The same, for three stems.
    Wide,
    /// Wider than the body by a pixel at each side, where there is one: the O, which is told from the zero by its width.
    Broad,
    /// The whole cell.
    Full,
    /// Two cells: the unit width is 12.
    Double,
}

impl Fit {
    fn pen(self, metrics: &Metrics) -> Pen {
        let pen = metrics.pen;
        if self != Fit::Wide || metrics.ink == Ink::Mono {
            return pen;
        }
        // Three stems want whole pixels between them. Where they fill the cell they are thinner, or they would run
        // into the next letter.
        let crammed = metrics.columns(self)[1].1 > f64::from(metrics.cell.width) - 1.0;
        Pen { x: pen.x.floor() * if crammed { CRAMMED } else { 1.0 }, ..pen }
    }
}

#[derive(Clone, Debug)]
enum Shape {
    /// An open or closed path of points; `true` marks a control point of a quadratic curve.
    Stroke(Vec<(Point, bool)>),
    /// A filled area, its border a path that is stroked as well.
    Fill(Vec<(Point, bool)>),
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

#[derive(Clone, Debug)]
struct Drawing {
    zone: Zone,
    fit: Fit,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Form {
    Drawn(Drawing),
    /// A base letter and an accent.
    Composed(Drawing, Drawing),
}

/// One glyph of the skeleton file.
#[derive(Clone, Debug)]
pub(crate) struct Skeleton {
    pub(crate) name: Name,
    /// The narrowest cell it is drawn in: below, an escape reads better.
    least_width: u8,
    form: Form,
}

/// The skeletons in the order of the file.
pub(crate) fn skeletons() -> &'static [Skeleton] {
    static FONT: OnceLock<Vec<Skeleton>> = OnceLock::new();
    FONT.get_or_init(|| {
        let mut font = Vec::new();
        for line in SOURCE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            // The file is compiled in and read whole by every test: a mistake in it is a mistake of the program.
            let skeleton = parse(line, &font).unwrap_or_else(|| panic!("fonts/fiche.txt: {line}"));
            font.push(skeleton);
        }
        font
    })
}

/// Reads one line of the skeleton file: `name class :: strokes` or `name = base accent`.
fn parse(line: &'static str, font: &[Skeleton]) -> Option<Skeleton> {
    let mut words = line.split_whitespace().peekable();
    let name = match words.next()? {
        "newline" => Name::Newline,
        "tab" => Name::Tab,
        "hard" => Name::Hard,
        word if word.bytes().all(|b| b.is_ascii_lowercase()) => Name::Accent(word),
        hex => Name::Code(code_point(hex)?),
    };
    if let Name::Code(code) = name {
        // The character itself follows its number, for the reader.
        (words.next()? == char::from_u32(code)?.encode_utf8(&mut [0; 4])).then_some(())?;
    }
    let drawing = |name: Name| match &font.iter().find(|skeleton| skeleton.name == name)?.form {
        Form::Drawn(drawing) => Some(drawing.clone()),
        Form::Composed(..) => None,
    };
    if words.next_if_eq(&"=").is_some() {
        let base = drawing(Name::Code(code_point(words.next()?)?))?;
        let accent = drawing(Name::Accent(words.next()?))?;
        return Some(Skeleton { name, least_width: 0, form: Form::Composed(base, accent) });
    }
    let (mut zone, mut fit, mut least_width) = (Zone::Cap, Fit::Body, 0);
    for word in words.by_ref() {
        match word {
            "low" => zone = Zone::Low,
            "cap" => zone = Zone::Cap,
            "accent" => zone = Zone::Accent,
            "mid" => fit = Fit::Mid,
            "odd" => fit = Fit::Odd,
            "wide" => fit = Fit::Wide,
            "broad" => fit = Fit::Broad,
            "full" => fit = Fit::Full,
            "double" => fit = Fit::Double,
            "::" => break,
            _ => least_width = word.strip_prefix('w')?.parse().ok()?,
        }
    }
    let (_, strokes) = line.split_once(" :: ")?;
    let parts = strokes.split(';').map(|part| parse_part(part.trim())).collect::<Option<_>>()?;
    Some(Skeleton { name, least_width, form: Form::Drawn(Drawing { zone, fit, parts }) })
}

fn code_point(hex: &str) -> Option<u32> {
    u32::from_str_radix(hex, 16).ok()
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
    let (filled, text) = text.strip_prefix("fill ").map_or((false, text), |rest| (true, rest));
    let mut path = Vec::new();
    for word in text.split_whitespace() {
        let (control, word) = word.strip_prefix('~').map_or((false, word), |rest| (true, rest));
        path.push((point(word)?, control));
    }
    if filled && path.first()? != path.last()? {
        path.push(path[0]);
    }
    let on_curve = path.len() >= 2 && !path[0].1 && !path[path.len() - 1].1;
    let shape = if filled { Shape::Fill(path) } else { Shape::Stroke(path) };
    on_curve.then_some(Part { shape, heavy, roomy })
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
        let desc = ((tall * 17 + 50) / 100).max(1);
        let cap = ((tall * 7 + 5) / 10).max(5).min(h - 1);
        // Five rows if they can be had: e, a and s need them.
        let low = ((cap * 71 + 50) / 100).max(5.min(cap - 1));
        let lead = h - cap - desc;
        let base = h - desc - (lead / 3).max(0);
        // One pixel in small cells: a grey seam beside every stem would cost more than its weight gives.
        let grow = |over: i32, rate: f64| 1.0 + f64::from(over.max(0)) * rate;
        let pen = match ink {
            Ink::Grey => {
                Pen { x: grow((w - 7).min(tall - 13), 0.13), y: grow((tall - 14).min(2 * w - 16), 0.07) }
            }
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

    /// The metrics of figures and brackets that are drawn white on black: where the body begins at the cell's edge it
    /// begins a pixel further in, or the white would run into the white beside it.
    pub(crate) fn inset(&self) -> Metrics {
        let inset = if self.left == 0.0 && self.right >= 4.0 { 1.0 } else { 0.0 };
        Metrics { left: self.left + inset, ..*self }
    }

    /// The unit lines that are fixed, with the pixel their strokes are centred on.
    fn columns(&self, fit: Fit) -> [(f64, f64); 2] {
        let (w, half) = (f64::from(self.cell.width), self.pen.x / 2.0);
        // Stems at both sides and in the middle fall on whole pixels only in an odd number of them.
        let odd = f64::from((self.right - self.left) % 2.0 == 0.0);
        let (left, right) = match fit {
            Fit::Body => (self.left, self.right),
            Fit::Mid => (self.left + odd / 2.0, self.right + odd / 2.0),
            Fit::Odd | Fit::Wide => (self.left, self.right + odd),
            Fit::Broad if self.left == 0.0 => (self.left, self.right),
            Fit::Broad => (self.left - 1.0, (self.right + 1.0).min(w)),
            Fit::Full => (0.0, w),
            Fit::Double => return [(0.0, half), (12.0, 2.0 * w - half)],
        };
        [(0.0, left + half), (6.0, right - half)]
    }

    /// The metrics that leave room for an accent, and the room's upper and lower edge.
    /// Letters as high as capitals are drawn lower under an accent.
    fn accented(&self, high: bool) -> (Metrics, (f64, f64)) {
        let height = f64::from(((u32::from(self.cell.height) + 2) / 5).max(2));
        if high {
            let gap = if self.base - height - 1.0 > self.base - self.low { 1.0 } else { 0.0 };
            (Metrics { cap: self.cap.max(height + gap), ..*self }, (0.0, height))
        } else {
            let gap = if self.low >= 3.0 { 1.0 } else { 0.0 };
            let bottom = self.low - gap;
            (*self, ((bottom - height).max(0.0), bottom))
        }
    }

    fn rows(&self, zone: Zone, accent: (f64, f64)) -> Vec<(f64, f64)> {
        let half = self.pen.y / 2.0;
        let mut rows = vec![(-3.0, self.desc - half), (0.0, self.base - half)];
        match zone {
            Zone::Low => rows.extend([(6.0, self.low + half), (9.0, self.cap + half)]),
            Zone::Cap => rows.push((9.0, self.cap + half)),
            Zone::Accent => rows = vec![(0.0, accent.1 - half), (2.0, accent.0 + half)],
        }
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
        let mut placed: Vec<(f64, f64)> = Vec::new();
        let near = |unit: f64| fixed.iter().find(|anchor| (anchor.0 - unit).abs() < 0.3);
        placed.extend(stems.iter().filter_map(|&unit| near(unit)));
        for &unit in stems.iter().filter(|&&unit| near(unit).is_none()) {
            let to = (axis.at(unit) - width / 2.0 + 0.5).floor() + width / 2.0;
            // Two stems do not share a pixel: the later stays where it falls.
            if !placed.iter().any(|&(other, at)| other != unit && (at - to).abs() < 1.0) {
                placed.push((unit, to));
            }
        }
        axis.anchors.extend(placed.into_iter().filter(|&(unit, _)| near(unit).is_none()));
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
    /// Covered samples of the pixels of its one or two cells; none where the cell is too narrow for it.
    pub(crate) fn draw(&self, metrics: &Metrics) -> Vec<Vec<u8>> {
        if metrics.cell.width < self.least_width || matches!(self.name, Name::Accent(_)) {
            return Vec::new();
        }
        let mut coverage = Coverage::new(metrics.cell);
        match &self.form {
            Form::Drawn(drawing) if drawing.fit == Fit::Double => {
                let mut right = Coverage::new(metrics.cell);
                drawing.draw(metrics, (0.0, 0.0), 0.0, &mut coverage);
                drawing.draw(metrics, (0.0, 0.0), f64::from(metrics.cell.width), &mut right);
                return vec![coverage.pixels(), right.pixels()];
            }
            Form::Drawn(drawing) => drawing.draw(metrics, (0.0, 0.0), 0.0, &mut coverage),
            Form::Composed(base, accent) => {
                let (metrics, room) = match accent.zone {
                    Zone::Accent => metrics.accented(base.high()),
                    _ => (*metrics, (0.0, 0.0)),
                };
                base.draw(&metrics, (0.0, 0.0), 0.0, &mut coverage);
                let accent = Drawing { fit: base.fit, ..accent.clone() };
                accent.draw(&metrics, room, 0.0, &mut coverage);
            }
        }
        vec![coverage.pixels()]
    }
}

impl Drawing {
    /// Does it reach above the x-height (a dot aside)?
    fn high(&self) -> bool {
        let above = |part: &Part| match &part.shape {
            Shape::Stroke(path) => path.iter().any(|(p, _)| p.y > 7.0),
            _ => false,
        };
        self.parts.iter().any(above)
    }

    /// Draws what lies `skip` pixels and more from the left; `accent` is the room of the accent zone.
    fn draw(&self, metrics: &Metrics, accent: (f64, f64), skip: f64, coverage: &mut Coverage) {
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
        let pen = self.fit.pen(metrics);
        let columns = Axis::new(&metrics.columns(self.fit), &across, pen.x);
        let rows = Axis::new(&metrics.rows(self.zone, accent), &down, pen.y);
        let place = |path: &[(Point, bool)]| -> Vec<(Point, bool)> {
            let place = |p: Point| Point { x: columns.at(p.x) - skip, y: rows.at(p.y) };
            path.iter().map(|&(p, control)| (place(p), control)).collect()
        };
        let counter = columns.at(6.0) - columns.at(0.0) - pen.x;
        let room = metrics.ink == Ink::Grey && counter >= ROOM;
        for part in self.parts.iter().filter(|part| !part.roomy || room) {
            let pen = pen.scaled(if part.heavy {
                HEAVY
            } else if part.roomy {
                SLASH
            } else {
                1.0
            });
            match &part.shape {
                Shape::Stroke(path) => coverage.stroke(&place(path), pen),
                Shape::Fill(path) => coverage.fill_path(&place(path), pen),
                Shape::Dot(p) => {
                    let at = place(&[(*p, false)])[0].0;
                    let size = |stroke: f64| (stroke * 3.2).floor() / 2.0;
                    let (w, h) = match metrics.ink {
                        Ink::Grey => (size(pen.x), size(pen.y)),
                        Ink::Mono => ((pen.x * 2.0).min(metrics.right - metrics.left - 2.0), pen.y * 2.0),
                    };
                    let left = (at.x - w / 2.0 + 0.5).floor();
                    let mut bottom = (at.y + pen.y / 2.0 + 0.5).floor();
                    if self.zone == Zone::Low && p.y > 6.0 {
                        // The dot of an i keeps clear of its stem.
                        bottom = bottom.min(metrics.low - 1.0);
                    }
                    coverage.rectangle(left, bottom - h, left + w, bottom);
                }
            }
        }
    }
}

/// The darkness, in samples covered, from which a pixel is one level darker.
fn borders(ink: Ink) -> &'static [u8] {
    match ink {
        Ink::Grey => &[10, 28, 46],
        Ink::Mono => &[33],
    }
}

/// The levels of a coverage: 0 is black.
pub(crate) fn levels(coverage: &[u8], ink: Ink) -> Vec<u8> {
    let level = |&c: &u8| ink.levels() - 1 - borders(ink).iter().filter(|&&border| c >= border).count() as u8;
    coverage.iter().map(level).collect()
}

/// The levels of a coverage that `free` agrees to. Where it refuses the plain ones, the pixels whose coverage lies
/// nearest to a border between two levels pass over it, alone first and then in pairs, until it agrees.
pub(crate) fn free_levels(coverage: &[u8], ink: Ink, free: impl Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
    let plain = levels(coverage, ink);
    if free(&plain) {
        return Some(plain);
    }
    // For each pixel and border: how far, which pixel, and the level beyond.
    let mut moves: Vec<(u8, usize, u8)> = Vec::new();
    for (pixel, &c) in coverage.iter().enumerate() {
        for (i, &border) in borders(ink).iter().enumerate() {
            let lighter = ink.levels() - 1 - i as u8;
            moves.push((c.abs_diff(border), pixel, if c >= border { lighter } else { lighter - 1 }));
        }
    }
    moves.sort_unstable();
    for (i, first) in moves.iter().enumerate() {
        for second in &moves[..=i] {
            let mut moved = plain.clone();
            moved[first.1] = first.2;
            moved[second.1] = second.2;
            if free(&moved) {
                return Some(moved);
            }
        }
    }
    None
}
