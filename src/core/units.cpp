#include "core/units.hpp"
