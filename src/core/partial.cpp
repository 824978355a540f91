#include "core/partial.hpp"
