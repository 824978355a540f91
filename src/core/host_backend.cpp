#include "core/backend.hpp"
