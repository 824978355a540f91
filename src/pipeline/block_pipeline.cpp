#include "pipeline/block_pipeline.hpp"
