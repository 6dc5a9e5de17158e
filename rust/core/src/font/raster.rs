//! Coverage of a cell's pixels by strokes and areas, on a grid of 8×8 samples a pixel.
//!
//! A row of samples is one `u128`, bit 0 leftmost: the widest cell has 16 pixels of 8 samples. Every shape is
//! a union of convex pieces, and a convex piece meets a row of samples in one span.

use crate::atlas::Cell;

/// Samples along each side of a pixel.
const FINE: usize = 8;
/// Straight pieces that stand for one quadratic curve.
const PIECES: u32 = 8;

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// An elliptic pen: the width it gives to vertical strokes and the height it gives to horizontal ones.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pen {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

impl Pen {
    pub(crate) fn scaled(self, factor: f64) -> Pen {
        Pen { x: self.x * factor, y: self.y * factor }
    }
}

/// The samples of a cell that ink covers.
#[derive(Clone)]
pub(crate) struct Coverage {
    cell: Cell,
    rows: Vec<u128>,
}

impl Coverage {
    pub(crate) fn new(cell: Cell) -> Coverage {
        Coverage { cell, rows: vec![0; usize::from(cell.height) * FINE] }
    }

    /// Covered samples of each pixel, row-major.
    pub(crate) fn pixels(&self) -> Vec<u8> {
        let mut pixels = Vec::with_capacity(self.cell.area());
        for rows in self.rows.chunks(FINE) {
            for x in 0..usize::from(self.cell.width) {
                let count = |row: &u128| ((row >> (x * FINE)) as u8).count_ones();
                pixels.push(rows.iter().map(count).sum::<u32>() as u8);
            }
        }
        pixels
    }

    /// Covers the samples of a row whose centres lie in `from..to` (pixels).
    fn span(&mut self, row: usize, from: f64, to: f64) {
        let width = f64::from(self.cell.width) * FINE as f64;
        let sample = |x: f64| (x * FINE as f64 - 0.5).ceil().clamp(0.0, width) as u32;
        let (from, to) = (sample(from), sample(to));
        if from < to {
            self.rows[row] |= (u128::MAX >> (128 - (to - from))) << from;
        }
    }

    /// Takes the ink off the pixels of a rectangle.
    pub(crate) fn clear(&mut self, left: usize, top: usize, right: usize, bottom: usize) {
        for y in top * FINE..(bottom * FINE).min(self.rows.len()) {
            for x in left * FINE..(right * FINE).min(128) {
                self.rows[y] &= !(1 << x);
            }
        }
    }

    /// The rows of samples whose centres lie in `top..bottom`, with those centres.
    fn rows_between(&self, top: f64, bottom: f64) -> impl Iterator<Item = (usize, f64)> + use<> {
        let height = self.rows.len() as f64;
        let sample = |y: f64| (y * FINE as f64 - 0.5).ceil().clamp(0.0, height) as usize;
        (sample(top)..sample(bottom)).map(|row| (row, (row as f64 + 0.5) / FINE as f64))
    }

    pub(crate) fn rectangle(&mut self, left: f64, top: f64, right: f64, bottom: f64) {
        for (row, _) in self.rows_between(top, bottom) {
            self.span(row, left, right);
        }
    }

    /// Fills a polygon (even-odd).
    fn fill(&mut self, corners: &[Point]) {
        let top = corners.iter().fold(f64::INFINITY, |y, p| y.min(p.y));
        let bottom = corners.iter().fold(f64::NEG_INFINITY, |y, p| y.max(p.y));
        let mut crossings = Vec::new();
        for (row, y) in self.rows_between(top, bottom) {
            crossings.clear();
            for (i, a) in corners.iter().enumerate() {
                let b = corners[(i + 1) % corners.len()];
                if (a.y <= y) != (b.y <= y) {
                    crossings.push(a.x + (y - a.y) * (b.x - a.x) / (b.y - a.y));
                }
            }
            crossings.sort_by(f64::total_cmp);
            for pair in crossings.chunks_exact(2) {
                self.span(row, pair[0], pair[1]);
            }
        }
    }

    /// An ellipse of the pen's size.
    fn touch(&mut self, at: Point, pen: Pen) {
        let half = pen.y / 2.0;
        for (row, y) in self.rows_between(at.y - half, at.y + half) {
            let d = (y - at.y) / half;
            let reach = (1.0 - d * d).max(0.0).sqrt() * pen.x / 2.0;
            self.span(row, at.x - reach, at.x + reach);
        }
    }

    /// Draws along a path; `true` marks a control point. Ends and corners of upright and level pieces are square,
    /// all others round.
    pub(crate) fn stroke(&mut self, path: &[(Point, bool)], pen: Pen) {
        let line = flatten(path);
        for (i, pair) in line.windows(2).enumerate() {
            self.segment(pair[0], pair[1], pen, i == 0, i + 2 == line.len());
        }
    }

    /// Fills a closed path and draws along it.
    pub(crate) fn fill_path(&mut self, path: &[(Point, bool)], pen: Pen) {
        self.fill(&flatten(path));
        self.stroke(path, pen);
    }

    fn segment(&mut self, a: Point, b: Point, pen: Pen, starts: bool, ends: bool) {
        let (rx, ry) = (pen.x / 2.0, pen.y / 2.0);
        if a.x == b.x || a.y == b.y {
            let (left, right) = (a.x.min(b.x) - rx, a.x.max(b.x) + rx);
            self.rectangle(left, a.y.min(b.y) - ry, right, a.y.max(b.y) + ry);
            return;
        }
        // In the pen's own space the pen is a circle of radius one.
        let (dx, dy) = ((b.x - a.x) / rx, (b.y - a.y) / ry);
        let length = (dx * dx + dy * dy).sqrt();
        let normal = Point { x: -dy / length * rx, y: dx / length * ry };
        let along = Point { x: dx / length * rx, y: dy / length * ry };
        let corner = |p: Point, on: f64, side: f64| Point {
            x: p.x + on * along.x + side * normal.x,
            y: p.y + on * along.y + side * normal.y,
        };
        let (from, to) = (if starts { -1.0 } else { 0.0 }, if ends { 1.0 } else { 0.0 });
        self.fill(&[corner(a, from, 1.0), corner(b, to, 1.0), corner(b, to, -1.0), corner(a, from, -1.0)]);
        if !starts {
            self.touch(a, pen);
        }
    }
}

/// A path as straight pieces.
fn flatten(path: &[(Point, bool)]) -> Vec<Point> {
    let mut line = vec![path[0].0];
    for (i, &(to, control)) in path.iter().enumerate().skip(1) {
        if control {
            // Two controls in a row meet half-way between them.
            let end = match path[i + 1] {
                (next, true) => Point { x: (to.x + next.x) / 2.0, y: (to.y + next.y) / 2.0 },
                (next, false) => next,
            };
            let from = line[line.len() - 1];
            for step in 1..=PIECES {
                let t = f64::from(step) / f64::from(PIECES);
                let (a, b, c) = ((1.0 - t) * (1.0 - t), 2.0 * t * (1.0 - t), t * t);
                line.push(Point {
                    x: a * from.x + b * to.x + c * end.x,
                    y: a * from.y + b * to.y + c * end.y,
                });
            }
        } else if !path[i - 1].1 {
            line.push(to);
        }
    }
    line
}
