//! Bytes that claim to be an atlas are refused, or are those that it gives:
//! `cargo +nightly fuzz run --fuzz-dir rust/fuzz read_atlas`.
#![no_main]
use libfuzzer_sys::fuzz_target;
use microfiche_core::Typeface;

fuzz_target!(|data: &[u8]| {
    if let Ok(typeface) = Typeface::from_bytes(data) {
        assert_eq!(typeface.to_bytes(), data);
    }
});
