#include "core/pool.hpp"
