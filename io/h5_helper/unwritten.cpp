#include "io/h5_helper/unwritten.hpp"

namespace rowmill::h5 {

bool leaves_buffer(hid_t creation) {
  H5D_fill_value_t defined = H5D_FILL_VALUE_DEFAULT;
  H5D_fill_time_t time = H5D_FILL_TIME_IFSET;
  must(H5Pfill_value_defined(creation, &defined), "fill value");
  must(H5Pget_fill_time(creation, &time), "fill time");
  return defined == H5D_FILL_VALUE_UNDEFINED || time == H5D_FILL_TIME_NEVER;
}

}  // namespace rowmill::h5
