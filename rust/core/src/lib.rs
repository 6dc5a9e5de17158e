//! Text to dense pages of glyphs, and back from pixels.
//!
//! Pure: no Python, no I/O, no clock, no locale. The same input gives the same
//! bytes on every machine and any number of threads.
#![deny(unsafe_code)]
