#include "jobs/moments.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace rowmill {

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

ColumnMoments block_moments(PartialView lane) {
  return {lane.i64("block_count"),  lane.i64("block_missing"), lane.f64("block_sum"),
          lane.f64("block_second"), lane.f64("block_min"),     lane.f64("block_max")};
}

/// Can squares of values in this range, times a scale, be summed in fp64 without overflow or loss?
bool range_fits(double min, double max, double scale) {
  const double width = (max - min) * scale;
  return width == 0 || (std::isfinite(width) && width > 1e-140 && width < 1e140);
}

}  // namespace

void add_moments(PartialLayout& layout, std::int64_t columns) {
  layout.add("count", ElementKind::i64, Combine::sum, columns);
  layout.add("missing", ElementKind::i64, Combine::sum, columns);
  layout.add("sum", ElementKind::binned, Combine::sum, columns);
  layout.add("second", ElementKind::binned, Combine::sum, columns);
  layout.add("min", ElementKind::f64, Combine::min, columns);
  layout.add("max", ElementKind::f64, Combine::max, columns);
  for (const char* name :
       {"shift", "scale", "block_count", "block_missing", "block_sum", "block_second", "block_min", "block_max"}) {
    layout.add_scratch(name, columns);
  }
}

void upload(double* to, const std::vector<double>& values, Ops& ops, Queue queue) {
  Backend& backend = ops.backend();
  backend.copy(to, values.data(), values.size() * sizeof(double), queue);
  backend.wait_host(backend.record(queue));
}

std::vector<double> fetch(const double* from, std::int64_t count, Ops& ops, Queue queue) {
  Backend& backend = ops.backend();
  std::vector<double> values(static_cast<std::size_t>(count));
  backend.copy(values.data(), from, values.size() * sizeof(double), queue);
  backend.wait_host(backend.record(queue));
  return values;
}

void prepare_moments(PartialView lane, const State& state, Ops& ops, Queue queue) {
  upload(lane.f64("shift"), state.arrays.at("shift"), ops, queue);
  upload(lane.f64("scale"), state.arrays.at("scale"), ops, queue);
}

ColumnMap column_map(PartialView lane) {
  return {lane.f64("shift"), lane.f64("scale")};
}

void accumulate_moments(const Block& block, PartialView lane, Ops& ops, Queue queue) {
  const ColumnMoments of_block = block_moments(lane);
  const std::int64_t columns = column_count(block.x);
  ops.column_moments(block, column_map(lane), of_block, queue);
  ops.add(lane.i64("count"), of_block.count, columns, queue);
  ops.add(lane.i64("missing"), of_block.missing, columns, queue);
  ops.add_binned(lane.binned("sum"), of_block.sum, queue);
  ops.add_binned(lane.binned("second"), of_block.second, queue);
  ops.keep_min(lane.f64("min"), of_block.min, columns, queue);
  ops.keep_max(lane.f64("max"), of_block.max, columns, queue);
}

void choose_shift(const Block& block, PartialView lane, State& state, Ops& ops, Queue queue) {
  const ColumnMoments of_block = block_moments(lane);
  const std::int64_t columns = column_count(block.x);
  if (std::holds_alternative<CsrRows>(block.x)) {
    state.arrays["shift"] = std::vector<double>(static_cast<std::size_t>(columns), 0.0);
    state.arrays["scale"] = std::vector<double>(static_cast<std::size_t>(columns), 1.0);
    return;
  }
  ops.column_moments(block, {}, of_block, queue);
  std::vector<double> target = fetch(of_block.sum, columns, ops, queue);
  std::vector<double> count = fetch(reinterpret_cast<const double*>(of_block.count), columns, ops, queue);
  for (std::size_t j = 0; j < target.size(); ++j) {
    target[j] /= static_cast<double>(std::bit_cast<std::int64_t>(count[j]));
    if (!std::isfinite(target[j])) target[j] = 0;
  }
  upload(of_block.sum, target, ops, queue);
  ops.nearest_values(block, of_block.sum, lane.f64("shift"), queue);
  state.arrays["shift"] = fetch(lane.f64("shift"), columns, ops, queue);
  state.arrays["scale"] = std::vector<double>(target.size(), 1.0);
}

Moments finish_moments(HostPartial& global, const State& state, int ddof) {
  Moments m;
  m.count = global.integers("count");
  m.missing = global.integers("missing");
  m.min = global.doubles("min");
  m.max = global.doubles("max");
  const std::size_t columns = m.count.size();
  std::vector<double> s_hi(columns), s_lo(columns), q_hi(columns), q_lo(columns);
  binned_round2(global.view().binned("sum"), s_hi, s_lo);
  binned_round2(global.view().binned("second"), q_hi, q_lo);
  for (auto* v : {&m.sum, &m.mean, &m.variance, &m.deviation, &m.delta, &m.spread}) v->assign(columns, not_a_number);
  m.constant.assign(columns, 0);
  const auto& shift = state.arrays.at("shift");
  const auto& scale = state.arrays.at("scale");

  for (std::size_t j = 0; j < columns; ++j) {
    const auto n = static_cast<long double>(m.count[j]);
    m.spread[j] = 0;
    if (m.count[j] == 0) {
      m.sum[j] = 0;
      m.min[j] = m.max[j] = not_a_number;
      continue;
    }
    const bool finite = std::isfinite(m.min[j]) && std::isfinite(m.max[j]);
    m.constant[j] = finite && m.min[j] == m.max[j];
    const long double s = static_cast<long double>(s_hi[j]) + (std::isfinite(s_hi[j]) ? s_lo[j] : 0.0);
    const long double q = static_cast<long double>(q_hi[j]) + (std::isfinite(q_hi[j]) ? q_lo[j] : 0.0);
    const long double delta = s / n, about_mean = q - s * delta;
    m.delta[j] = static_cast<double>(delta);
    const auto free = static_cast<long double>(m.count[j] - ddof);
    if (m.constant[j]) {
      m.sum[j] = static_cast<double>(n * m.min[j]);
      m.mean[j] = m.min[j];
      if (free > 0) m.variance[j] = m.deviation[j] = 0;
      continue;
    }
    m.sum[j] = static_cast<double>(n * shift[j] + s / scale[j]);
    m.mean[j] = static_cast<double>(shift[j] + delta / scale[j]);
    if (!finite) continue;
    m.out_of_range = m.out_of_range || !range_fits(m.min[j], m.max[j], scale[j]);
    const long double variance = std::max(about_mean, 0.0L) / n;
    m.spread[j] =
        variance > 0 ? static_cast<double>(delta * delta / variance) : std::numeric_limits<double>::infinity();
    m.worst_spread = std::max(m.worst_spread, m.spread[j]);
    if (free > 0) {
      const long double w = std::max(about_mean, 0.0L) / free;
      m.variance[j] = static_cast<double>(w / scale[j] / scale[j]);
      m.deviation[j] = static_cast<double>(std::sqrt(w) / scale[j]);
    }
  }
  return m;
}

bool improve_shift(const Moments& moments, double limit, State& state) {
  if (state.pass > 0 || (moments.worst_spread <= limit && !moments.out_of_range)) return false;
  auto& shift = state.arrays.at("shift");
  auto& scale = state.arrays.at("scale");
  for (std::size_t j = 0; j < shift.size(); ++j) {
    const double min = moments.min[j], max = moments.max[j];
    if (!std::isfinite(min) || !std::isfinite(max)) continue;
    // Where sums overflowed the middle of the range serves; the mean lies within it.
    const double middle = min / 2 + max / 2;
    shift[j] = std::isfinite(moments.mean[j]) ? std::clamp(moments.mean[j], min, max) : middle;
    // Within ±1000 the scale itself is a double; subnormal ranges come out near 1e-20, which squares well.
    if (!range_fits(min, max, scale[j]))
      scale[j] = std::ldexp(1.0, std::clamp(-std::ilogb(max / 2 - min / 2), -1000, 1000));
  }
  state.pass = 1;
  return true;
}

}  // namespace rowmill
