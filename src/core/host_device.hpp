#pragma once
// The mark of functions that host code and CUDA kernels share. They are plain C++ and call nothing that is not marked.
#if defined(__CUDACC__)
#define ROWMILL_HD __host__ __device__
// Before a template of that kind which calls what it is given: that need not be marked if only hosts give it.
#define ROWMILL_HD_CALLS_ITS_ARGUMENT _Pragma("nv_exec_check_disable")
#else
#define ROWMILL_HD
#define ROWMILL_HD_CALLS_ITS_ARGUMENT
#endif

// Before a loop over an array that a GPU is to keep in registers, or whose loads are to be in flight together.
#if defined(__CUDA_ARCH__)
#define ROWMILL_UNROLL _Pragma("unroll")
#define ROWMILL_UNROLL_4 _Pragma("unroll 4")
#else
#define ROWMILL_UNROLL
#define ROWMILL_UNROLL_4
#endif
