#include "kernels/functors.hpp"

namespace rowmill::functors {

AnyRows any_rows(const Block& block) {
  AnyRows all;
  if (const auto* dense = std::get_if<DenseRows>(&block.x)) {
    all.data = dense->data;
    all.stride = dense->stride;
  } else {
    const auto& sparse = std::get<CsrRows>(block.x);
    all.data = sparse.value;
    all.row_start = sparse.row_start;
    all.index = sparse.index;
  }
  all.type = element_type(block.x);
  all.element_bytes = static_cast<std::int64_t>(size_of(all.type));
  all.rows = row_count(block.x);
  all.columns = column_count(block.x);
  all.first_row = block.range.first;
  if (block.missing) {
    all.mask = block.missing->data;
    all.mask_stride = block.missing->stride;
  }
  return all;
}

}  // namespace rowmill::functors
