//! Inner loops compiled twice: for any processor, and for those with AVX2 and the bit instructions of x86-64-v3.
//!
//! Both are the same source and integer arithmetic, so they give the same bytes. This is the one module that may hold
//! unsafe code.
#![allow(unsafe_code)]

/// A loop that gains by newer instructions. [`Work::run`] and what it calls in its loops must be inlined, or stays
/// as it is compiled for any processor.
pub(crate) trait Work {
    type Output;

    fn run(self) -> Self::Output;
}

/// Runs `work` as compiled for this processor, or for any if `portable`.
#[inline]
pub(crate) fn run<W: Work>(work: W, portable: bool) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if !portable && is_v3() {
        // SAFETY: the processor has every instruction that the function is compiled for.
        return unsafe { run_v3(work) };
    }
    let _ = portable;
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,avx2,bmi1,bmi2,lzcnt,movbe,popcnt,sse3,ssse3,sse4.1,sse4.2")]
unsafe fn run_v3<W: Work>(work: W) -> W::Output {
    work.run()
}

/// Whether the processor has what [`run_v3`] is compiled for. Looked up once by the standard library.
#[cfg(target_arch = "x86_64")]
#[inline]
fn is_v3() -> bool {
    use std::arch::is_x86_feature_detected as has;
    // Those with AVX2 have the older ones, and systems that save its registers those of AVX.
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("movbe") && has!("popcnt")
}
