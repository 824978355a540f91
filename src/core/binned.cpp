#include "core/binned.hpp"
