#include "kernels/ops.hpp"
