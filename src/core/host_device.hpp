#pragma once
// The mark of functions that host code and CUDA kernels share. They are plain C++ and call nothing that is not marked.
#if defined(__CUDACC__)
#define ROWMILL_HD __host__ __device__
#else
#define ROWMILL_HD
#endif

// Before a loop over an array that a GPU is to keep in registers, or whose loads are to be in flight together.
#if defined(__CUDA_ARCH__)
#define ROWMILL_UNROLL _Pragma("unroll")
#define ROWMILL_UNROLL_4 _Pragma("unroll 4")
#else
#define ROWMILL_UNROLL
#define ROWMILL_UNROLL_4
#endif
