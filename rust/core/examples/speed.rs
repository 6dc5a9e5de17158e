//! Times the engine on a text file: `cargo run --release --example speed FILE`.
//!
//! Prints the best of several runs of each cell, ink and level, on one thread, for the first 12,000
//! characters and for a million (the file repeated if it is shorter) on pages of 1568×784, characters a second on
//! full pages of 1568×1568, and the bytes of the million. `smallest` behind the file takes that level instead.
use std::time::{Duration, Instant};

use microfiche_core::{Cell, Ink, Level, Options, Page, Segment, render};

fn best(runs: usize, mut draw: impl FnMut() -> Vec<Page>) -> (Duration, Vec<Page>) {
    let mut pages = draw();
    let mut least = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        pages = draw();
        least = least.min(start.elapsed());
    }
    (least, pages)
}

fn main() {
    let path = std::env::args().nth(1).expect("the path of a text file");
    let source = std::fs::read_to_string(path).expect("a readable text file");
    let text: String = source.chars().cycle().take(1_000_000).collect();
    let short: String = text.chars().take(12_000).collect();
    let levels = match std::env::args().nth(2) {
        Some(_) => vec![Level::Smallest],
        None => vec![Level::Fastest, Level::Default],
    };
    println!(
        "{:<22} {:>10} {:>10} {:>18} {:>6} {:>12}",
        "cell, ink, level", "12k, ms", "1M, ms", "full pages, M/s", "pages", "1M, bytes"
    );
    for (width, height, ink) in
        [(5, 8, Ink::Mono), (6, 12, Ink::Grey), (9, 16, Ink::Grey), (9, 16, Ink::Mono)]
    {
        for &level in &levels {
            let cell = Cell::new(width, height).expect("a cell in range");
            let options = Options { level, threads: 1, ..Options::new(cell, ink, 1568, 784) };
            let square = Options { height: 1568, ..options.clone() };
            let draw = |text: &str, options: &Options| {
                render(&[Segment::Text(text.as_bytes())], options).expect("a sound text")
            };
            let runs = if level == Level::Smallest { 1 } else { 15 };
            let (few, _) = best(runs * 40, || draw(&short, &options));
            let (many, pages) = best(runs, || draw(&text, &options));
            // What one full page holds.
            let cells = (1568 / width * (1568 / height - 1)) as usize;
            let full: String = text.chars().take(cells * 9 / 10).collect();
            let (one, _) = best(runs * 10, || draw(&full, &square));
            let bytes: usize = pages.iter().map(|page| page.png.len()).sum();
            println!(
                "{:<22} {:>10.3} {:>10.1} {:>18.1} {:>6} {:>12}",
                format!("{width}x{height} {ink:?} {level:?}"),
                few.as_secs_f64() * 1e3,
                many.as_secs_f64() * 1e3,
                full.len() as f64 / one.as_secs_f64() / 1e6,
                pages.len(),
                bytes
            );
        }
    }
}
