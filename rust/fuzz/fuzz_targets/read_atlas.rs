//! Bytes that claim to be an atlas are refused, or are the bytes that it gives.
#![no_main]
use libfuzzer_sys::fuzz_target;
use microfiche_core::Typeface;

fuzz_target!(|data: &[u8]| {
    if let Ok(typeface) = Typeface::from_bytes(data) {
        assert_eq!(typeface.to_bytes(), data);
    }
});
