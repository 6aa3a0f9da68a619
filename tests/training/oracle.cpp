#include "oracle.hpp"

#include <sparsekit/training.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "philox.hpp"

namespace training {

int64_t floor_count(double x) {
  return static_cast<int64_t>(std::floor(x * (1 + 0x1p-50)));
}

int64_t ceil_count(double x) {
  return static_cast<int64_t>(std::ceil(x * (1 - 0x1p-50)));
}

int64_t round_count(double x) {
  return static_cast<int64_t>(std::floor(x + 0.5));
}

// --- schedules ----------------------------------------------------------------------------------

double custom_rate(int64_t t) {
  return static_cast<double>((t * 5 + 3) % 17) / 20;
}

double ScheduleModel::cumulative(int64_t t) const {
  if (t <= t_start) return first;
  if (t >= t_max) return last;
  const double way = static_cast<double>(t - t_start) / static_cast<double>(t_max - t_start);
  return last + (first - last) * (1 - way) * (1 - way) * (1 - way);
}

double ScheduleModel::rate(int64_t t) const {
  const double way = static_cast<double>(t) / static_cast<double>(t_max);
  switch (kind) {
    case kCosine:
      if (t >= t_max) return last;
      return last + (first - last) * (1 + std::cos(std::acos(-1.0) * way)) / 2;
    case kLinear:
      return std::max(0.0, first * (1 - way));
    case kMagnitude:
      return std::max(0.0, cumulative(t) - cumulative(t - interval));
    default:
      return custom_rate(t);
  }
}

std::string ScheduleModel::text() const {
  static const char *const kNames[] = {"cosine", "linear", "magnitude", "custom"};
  return std::string(kNames[kind]) + " from " + std::to_string(first) + " to " +
         std::to_string(last) + ", t_max " + std::to_string(t_max) + ", t_start " +
         std::to_string(t_start) + ", interval " + std::to_string(interval);
}

// --- densities ----------------------------------------------------------------------------------

int64_t kernel_size(const Dims &shape) {
  if (shape.size() <= 2) return 1;
  return prop::product(Dims(shape.begin() + 2, shape.end()));
}

namespace {

double raw_density(const Dims &shape, bool kernel) {
  double sum = 0;
  double product = 1;
  const size_t dims = kernel ? shape.size() : 2;
  for (size_t d = 0; d < dims; ++d) {
    sum += static_cast<double>(shape[d]);
    product *= static_cast<double>(shape[d]);
  }
  return sum / product;
}

// eps for a given set of dense layers.
double solve(const std::vector<Dims> &shapes, const std::vector<double> &raw,
             const std::vector<bool> &dense, double density) {
  int64_t places = 0;
  double weight = 0;
  for (size_t l = 0; l < shapes.size(); ++l) {
    const double numel = static_cast<double>(prop::product(shapes[l]));
    if (dense[l]) {
      places -= floor_count((1 - density) * numel);
    } else {
      places += floor_count(density * numel);
      weight += raw[l] * numel;
    }
  }
  return static_cast<double>(places) / weight;
}

}  // namespace

std::vector<double> erdos_renyi(const std::vector<Dims> &shapes, double density, bool kernel) {
  std::vector<double> raw;
  for (const Dims &shape : shapes) raw.push_back(raw_density(shape, kernel));
  std::vector<bool> dense(shapes.size(), false);
  std::vector<double> result(shapes.size(), 1);
  for (;;) {
    double largest = 0;
    for (size_t l = 0; l < raw.size(); ++l) {
      if (!dense[l]) largest = std::max(largest, raw[l]);
    }
    if (largest == 0) return result;
    const double eps = solve(shapes, raw, dense, density);
    if (eps * largest <= 1) {
      for (size_t l = 0; l < raw.size(); ++l) {
        if (!dense[l]) result[l] = eps * raw[l];
      }
      return result;
    }
    for (size_t l = 0; l < raw.size(); ++l) {
      if (raw[l] == largest) dense[l] = true;
    }
  }
}

bool is_structured_init(int mode) {
  return mode == SPK_INIT_STRUCT_RANDOM || mode == SPK_INIT_STRUCT_ERDOS_RENYI ||
         mode == SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL;
}

bool leaves(int mode, const Dims &shape, bool first) {
  if (mode == SPK_INIT_RANDOM) return first;
  return is_structured_init(mode) && shape.size() <= 2;
}

std::vector<double> densities(const std::vector<Dims> &shapes, int mode, double density) {
  std::vector<Dims> rest;
  double staying = 0;
  double leaving = 0;
  for (size_t l = 0; l < shapes.size(); ++l) {
    const double numel = static_cast<double>(prop::product(shapes[l]));
    if (leaves(mode, shapes[l], l == 0)) {
      leaving += numel;
    } else {
      staying += numel;
      rest.push_back(shapes[l]);
    }
  }
  if (is_structured_init(mode)) {
    density = (density * (staying + leaving) - leaving) / staying;
    if (!(density >= 0)) return {};
  }
  std::vector<double> sparse(rest.size(), density);
  if (mode == SPK_INIT_ERDOS_RENYI || mode == SPK_INIT_STRUCT_ERDOS_RENYI) {
    sparse = erdos_renyi(rest, density, false);
  } else if (mode == SPK_INIT_ERDOS_RENYI_KERNEL || mode == SPK_INIT_STRUCT_ERDOS_RENYI_KERNEL) {
    sparse = erdos_renyi(rest, density, true);
  }
  std::vector<double> result;
  auto next = sparse.begin();
  for (size_t l = 0; l < shapes.size(); ++l) {
    result.push_back(leaves(mode, shapes[l], l == 0) ? 1 : *next++);
  }
  return result;
}

// --- handing out --------------------------------------------------------------------------------

namespace {

// Real shares, none above its cap.
std::vector<double> real_shares(int64_t total, const std::vector<double> &share,
                                const std::vector<int64_t> &caps) {
  double sum = 0;
  for (double s : share) sum += s;
  std::vector<double> part(share.size());
  for (size_t l = 0; l < share.size(); ++l) part[l] = share[l] / sum * static_cast<double>(total);
  for (;;) {
    double over = 0;
    int64_t below = 0;
    for (size_t l = 0; l < part.size(); ++l) {
      const double cap = static_cast<double>(caps[l]);
      if (part[l] > cap) {
        over += part[l] - cap;
        part[l] = cap;
      }
      if (part[l] < cap) ++below;
    }
    if (over == 0 || below == 0) return part;
    for (size_t l = 0; l < part.size(); ++l) {
      if (part[l] < static_cast<double>(caps[l])) part[l] += over / static_cast<double>(below);
    }
  }
}

// Fractions that are nearer than this may be kept apart, or not, by rounding alone.
constexpr double kNear = 1e-7;

// Whether one of the layers that were given a place more and one that was not are as near as that,
// though their shares are two numbers.
bool may_change_places(const std::vector<size_t> &order, size_t taken,
                       const std::vector<double> &fraction, const std::vector<double> &share) {
  for (size_t i = 0; i < std::min(taken, order.size()); ++i) {
    for (size_t j = taken; j < order.size(); ++j) {
      const bool near = std::abs(fraction[order[i]] - fraction[order[j]]) < kNear;
      if (near && share[order[i]] != share[order[j]]) return true;
    }
  }
  return false;
}

}  // namespace

Allotment hand_out(int64_t total, const std::vector<double> &share,
                   const std::vector<int64_t> &caps) {
  Allotment result;
  if (total >= std::accumulate(caps.begin(), caps.end(), int64_t{0})) {
    result.counts = caps;
    return result;
  }
  const std::vector<double> part = real_shares(total, share, caps);
  std::vector<double> fraction;
  std::vector<size_t> order;
  int64_t rest = total;
  for (size_t l = 0; l < part.size(); ++l) {
    // What misses a whole number by rounding alone is one.
    const double whole = std::floor(part[l] + 1e-9 * (1 + part[l]));
    result.counts.push_back(static_cast<int64_t>(whole));
    fraction.push_back(std::max(0.0, part[l] - whole));
    order.push_back(l);
    rest -= result.counts.back();
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return fraction[a] > fraction[b]; });
  const size_t taken = static_cast<size_t>(std::max<int64_t>(rest, 0));
  for (size_t i = 0; i < std::min(taken, order.size()); ++i) ++result.counts[order[i]];
  result.doubtful = may_change_places(order, taken, fraction, share);
  return result;
}

// --- layers -------------------------------------------------------------------------------------

int64_t LayerData::nonzeros() const {
  return std::count(mask.begin(), mask.end(), true);
}

double adam_momentum(double m1, double m2) {
  return m1 / (std::sqrt(m2) + 1e-8);
}

double mean_magnitude(const LayerData &layer, const std::vector<double> &values) {
  long double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (layer.mask[i]) sum += std::abs(values[i]);
  }
  const int64_t count = layer.nonzeros();
  return count == 0 ? 0 : static_cast<double>(sum / static_cast<long double>(count));
}

// --- selection ----------------------------------------------------------------------------------

namespace {

double criterion_of(const double *values, int64_t count, Criterion by) {
  if (by == kFirst) return values[0];
  double sum = 0;
  double high = values[0];
  double low = values[0];
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(values[i])) return std::nan("");
    sum += values[i];
    high = std::max(high, values[i]);
    low = std::min(low, values[i]);
  }
  if (by == kMean) return sum / static_cast<double>(count);
  return by == kMax ? high : low;
}

Places listed(const std::vector<bool> &candidate) {
  Places places;
  for (size_t i = 0; i < candidate.size(); ++i) {
    if (candidate[i]) places.push_back(static_cast<int64_t>(i));
  }
  return places;
}

Places first_of(Places places, int64_t count) {
  if (count < static_cast<int64_t>(places.size())) {
    places.resize(static_cast<size_t>(std::max<int64_t>(0, count)));
  }
  std::sort(places.begin(), places.end());
  return places;
}

}  // namespace

std::vector<double> kernel_scores(const std::vector<double> &values, int64_t kernel, Criterion by) {
  std::vector<double> scores;
  for (size_t at = 0; at < values.size(); at += static_cast<size_t>(kernel)) {
    scores.push_back(std::abs(criterion_of(values.data() + at, kernel, by)));
  }
  return scores;
}

Places weakest(const std::vector<double> &scores, const std::vector<bool> &candidate,
               int64_t count) {
  Places places = listed(candidate);
  std::reverse(places.begin(), places.end());
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
    const double first = scores[static_cast<size_t>(a)];
    const double second = scores[static_cast<size_t>(b)];
    if (std::isnan(first) || std::isnan(second)) return !std::isnan(first) && std::isnan(second);
    return first < second;
  });
  return first_of(std::move(places), count);
}

Places strongest(const std::vector<double> &scores, const std::vector<bool> &candidate,
                 int64_t count) {
  Places places = listed(candidate);
  std::erase_if(places, [&](int64_t i) { return std::isnan(scores[static_cast<size_t>(i)]); });
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  return first_of(std::move(places), count);
}

Places drawn(const Draw &draw, const std::vector<bool> &candidate, int64_t count) {
  std::vector<uint64_t> word(candidate.size());
  for (size_t i = 0; i < word.size(); ++i) {
    const Counter numbers = philox(
        {static_cast<uint32_t>(draw.layer), draw.purpose, draw.number, static_cast<uint32_t>(i)},
        key_of(draw.seed));
    word[i] = uint64_t{numbers[1]} << 32 | numbers[0];
  }
  Places places = listed(candidate);
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
    return word[static_cast<size_t>(a)] < word[static_cast<size_t>(b)];
  });
  return first_of(std::move(places), count);
}

std::vector<double> magnitudes(const std::vector<double> &values) {
  std::vector<double> result;
  for (double value : values) result.push_back(std::abs(value));
  return result;
}

std::vector<bool> active_kernels(const std::vector<bool> &mask, int64_t kernel) {
  std::vector<bool> active(mask.size() / static_cast<size_t>(kernel), false);
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) active[i / static_cast<size_t>(kernel)] = true;
  }
  return active;
}

std::vector<bool> negated(const std::vector<bool> &flags) {
  std::vector<bool> result = flags;
  result.flip();
  return result;
}

}  // namespace training
