//! Text to dense pages of glyphs, and back from pixels.
//!
//! Pure: no Python, no I/O, no clock, no locale. The same input gives the same
//! bytes on every machine and any number of threads.
//!
//! ```
//! use microfiche_core::{render, read_back, Cell, Ink, Options, Piece, Pixels, ReadOptions, Segment};
//!
//! let options = Options::new(Cell::new(9, 16).unwrap(), Ink::Grey, 320, 200);
//! let pages = render(&[Segment::Text(b"total: 3\n")], &options).unwrap();
//! let pixels = Pixels::from_png(&pages[0].png).unwrap();
//! let read = read_back(&[pixels], &ReadOptions::default()).unwrap();
//! assert_eq!(read, [Piece::Text(b"total: 3\n".to_vec())]);
//! ```
#![deny(unsafe_code)]

mod atlas;
mod cpu;
mod font;
mod grammar;
mod layout;
mod page;
mod png;
mod readback;
mod strip;
mod trained;
mod typeface;

pub use atlas::{Atlas, BadCell, Cell, Glyph, Ink, Marks, Tile, TileKind};
pub use grammar::{GRAMMAR, Kind, Lines, Piece, Position, Segment};
pub use page::{Error, MAX_PIXELS, Options, Page, digest, render, render_each};
pub use png::deflate::Level;
pub use readback::{Pixels, PlacedBar, ReadError, ReadOptions, Reader, Where, bars, form_of, read_back};
pub use typeface::{BadTypeface, Typeface};
