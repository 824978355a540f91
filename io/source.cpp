#include "io/source.hpp"
