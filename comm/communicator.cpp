#include "comm/communicator.hpp"
#include "comm/world.hpp"
