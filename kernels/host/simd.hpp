#pragma once
// Which instruction sets host kernels are compiled for. To be included before hwy/foreach_target.h and hwy/highway.h.
// One step with 512-bit vectors, one with 256-bit vectors and fused multiply-add, and the portable fallback are enough;
// scalable vectors are left out because kernels keep vectors in arrays and structs.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_AVX3_DL | HWY_SSE4 | HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#endif
