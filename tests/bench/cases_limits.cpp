// What the memory alone costs: operations that must read or write more or less than a sweep does
// can be no faster than these in the same order. Another order may be faster, as reading at several
// places is; and loops that ask for memory in time faster than plain ones.
#include <algorithm>
#include <atomic>
#include <memory>

#include "case.hpp"
#include "layout.hpp"
#include "skip.hpp"
#include "sweep_kernels.hpp"

namespace bench {
namespace {

constexpr double kFactor = 0.999;
constexpr int64_t kGrain = 64;  // elements: pieces begin at whole ones

void require_whole_grains(int64_t numel, int64_t per = 1) {
  if (numel % (per * kGrain) != 0) throw Skip("needs whole grains of blocks");
}

void read_in_pieces(const Setting &setting, const void *tensor, int64_t numel) {
  const auto *x = static_cast<const std::byte *>(tensor);
  const int64_t size = setting.pool.dtype().size;
  for_pieces(setting.execution, numel, [&](int64_t begin, int64_t end) {
    static std::atomic<uint64_t> seen;
    seen += read_all(x + begin * size, (end - begin) * size);
  });
}

// fn(index) for each index of [0, count), shared out as the elements of a tensor are.
void for_each_in_pieces(const Setting &setting, int64_t count,
                        const std::function<void(int64_t index)> &fn) {
  for_pieces(setting.execution, count * kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin / kGrain; index < end / kGrain; ++index) fn(index);
  });
}

Trial limit_trial(const Setting &setting, int64_t numel, double times,
                  std::function<void()> operation) {
  Trial trial = against_sweep(setting, numel * setting.pool.dtype().size);
  trial.traffic = times * static_cast<double>(trial.bytes);
  trial.operation = std::move(operation);
  trial.peak_bytes = [] { return int64_t{0}; };
  return trial;
}

// As norms do.
Trial reading(const Setting &setting, int64_t numel) {
  return limit_trial(setting, numel, 1,
                     [setting, numel] { read_in_pieces(setting, setting.pool.work(), numel); });
}

// The same at four places in turn, a few lines at each: memory gives more to several streams than
// to one. In boxes, because norms are shared out in boxes.
void read_in_turn(const std::byte *x, int64_t bytes) {
  constexpr int64_t kPlaces = 4;
  constexpr int64_t kAtPlace = int64_t{32} << 10;
  constexpr int64_t kBox = kPlaces * kAtPlace;
  constexpr int64_t kPiece = 512;
  static std::atomic<uint64_t> seen;
  uint64_t sum = 0;
  int64_t at = 0;
  for (; at + kBox <= bytes; at += kBox) {
    for (int64_t i = 0; i < kAtPlace; i += kPiece) {
      sum += read_rows(x + at + i, kPlaces, kAtPlace, kPiece);
    }
  }
  seen += sum + read_all(x + at, bytes - at);
}

Trial reading_in_turn(const Setting &setting, int64_t numel) {
  const int64_t size = setting.pool.dtype().size;
  return limit_trial(setting, numel, 1, [setting, numel, size] {
    const auto *x = static_cast<const std::byte *>(setting.pool.work());
    for_pieces(setting.execution, numel, [&](int64_t begin, int64_t end) {
      read_in_turn(x + begin * size, (end - begin) * size);
    });
  });
}

const Sweep &sweep_of(const Setting &setting, int64_t numel, bool by_another) {
  return setting.sweeps.fastest(setting.pool, setting.execution, numel * setting.pool.dtype().size,
                                by_another);
}

// As blocks larger than caches need it.
Trial reading_and_sweep(const Setting &setting, int64_t numel) {
  const Sweep &sweep = sweep_of(setting, numel, false);
  return limit_trial(setting, numel, 3, [setting, numel, &sweep] {
    read_in_pieces(setting, setting.pool.work(), numel);
    sweep.run(setting.pool);
  });
}

// As multipliers of elements do.
Trial sweeping_by_another(const Setting &setting, int64_t numel) {
  const Sweep &sweep = sweep_of(setting, numel, true);
  return limit_trial(setting, numel, 3, [setting, &sweep] { sweep.run(setting.pool); });
}

// As thresholds of elements do, which are checked before anything is written.
Trial reading_another_and_sweeping_by_it(const Setting &setting, int64_t numel) {
  const Sweep &sweep = sweep_of(setting, numel, true);
  return limit_trial(setting, numel, 4, [setting, numel, &sweep] {
    read_in_pieces(setting, setting.pool.conditioners(), numel);
    sweep.run(setting.pool);
  });
}

// As norms of elements do: the result is as large as the input.
Trial copying(const Setting &setting, int64_t numel) {
  const int64_t size = setting.pool.dtype().size;
  auto copy = std::make_shared<Memory>(numel * size);
  return limit_trial(setting, numel, 2, [setting, numel, size, copy] {
    const auto *from = static_cast<const std::byte *>(setting.pool.work());
    auto *to = static_cast<std::byte *>(copy->as());
    for_pieces(setting.execution, numel, [&](int64_t begin, int64_t end) {
      copy_streaming(to + begin * size, from + begin * size, (end - begin) * size);
    });
  });
}

// As multipliers and, if h is read before, thresholds of pairs do. One for two elements: of f32 and
// f64, half as many bytes.
template <bool kReadsBefore>
Trial sweeping_by_half(const Setting &setting, int64_t numel) {
  const int64_t half = numel / 2;
  const int64_t size = setting.pool.dtype().size;
  const SweepLoop loop = sweep_loops(setting.pool.dtype()).vectors;
  setting.pool.conditioners();  // made before it is timed
  return limit_trial(setting, numel, kReadsBefore ? 3 : 2.5, [setting, half, size, loop] {
    auto *x = static_cast<std::byte *>(setting.pool.work());
    const auto *h = static_cast<const std::byte *>(setting.pool.conditioners());
    if (kReadsBefore) read_in_pieces(setting, h, half);
    for_pieces(setting.execution, half, [&](int64_t begin, int64_t end) {
      loop(x + begin * size, h + begin * size, 1, end - begin);
      loop(x + (half + begin) * size, nullptr, kFactor, end - begin);
    });
  });
}

// As thresholds of 3 x 3 kernels do, one for nine elements: of f32 and f64, a ninth of the bytes.
Trial reading_ninth_and_sweeping_by_it(const Setting &setting, int64_t numel) {
  constexpr int64_t kKernel = 9;
  constexpr double kTimes = 2 + 2.0 / kKernel;  // x both ways, a ninth of h twice
  require_whole_grains(numel, kKernel);
  const int64_t grains = numel / (kKernel * kGrain);
  const int64_t size = setting.pool.dtype().size;
  const SweepLoop loop = sweep_loops(setting.pool.dtype()).vectors;
  setting.pool.conditioners();  // made before it is timed
  return limit_trial(setting, numel, kTimes, [setting, grains, size, loop] {
    auto *x = static_cast<std::byte *>(setting.pool.work());
    const auto *h = static_cast<const std::byte *>(setting.pool.conditioners());
    read_in_pieces(setting, h, grains * kGrain);
    for_each_in_pieces(setting, grains, [&](int64_t grain) {
      std::byte *kernels = x + grain * kKernel * kGrain * size;
      loop(kernels, h + grain * kGrain * size, 1, kGrain);
      loop(kernels + kGrain * size, nullptr, kFactor, (kKernel - 1) * kGrain);
    });
  });
}

// As most operations do: memory and arithmetic, which processors overlap only in part.
template <int kOperations, bool kWrites>
Trial computing_along(const Setting &setting, int64_t numel) {
  const int64_t size = setting.pool.dtype().size;
  return limit_trial(setting, numel, kWrites ? 2 : 1, [setting, numel, size] {
    static std::atomic<int32_t> seen;
    auto *x = static_cast<std::byte *>(setting.pool.work());
    for_pieces(setting.execution, numel, [&](int64_t begin, int64_t end) {
      seen += compute_along<kOperations, kWrites>(x + begin * size, (end - begin) * size);
    });
  });
}

// As thresholds of elements and of pairs do, with a number for each kPer: of those of f32 and f64,
// as many bytes or half as many, which are read before anything is written.
template <int kOperations, int kPer>
Trial computing_by(const Setting &setting, int64_t numel) {
  const int64_t size = setting.pool.dtype().size;
  const int64_t others = numel / kPer;
  setting.pool.conditioners();  // made before it is timed
  return limit_trial(setting, numel, 2 + 2.0 / kPer, [setting, others, size] {
    auto *x = static_cast<std::byte *>(setting.pool.work());
    const auto *h = static_cast<const std::byte *>(setting.pool.conditioners());
    read_in_pieces(setting, h, others);
    for_pieces(setting.execution, others, [&](int64_t begin, int64_t end) {
      compute_by<kOperations, kPer>(x + kPer * begin * size, h + begin * size,
                                    kPer * (end - begin) * size);
    });
  });
}

// As thresholds of 3 x 3 kernels do, with a number for each nine of f32 or f64.
template <int kOperations>
Trial computing_by_ninth(const Setting &setting, int64_t numel) {
  constexpr int64_t kKernel = 9;
  require_whole_grains(numel, kKernel);
  const int64_t size = setting.pool.dtype().size;
  const int64_t others = numel / kKernel;
  setting.pool.conditioners();  // made before it is timed
  return limit_trial(setting, numel, 2 + 2.0 / kKernel, [setting, others, size] {
    static std::atomic<uint64_t> seen;
    auto *x = static_cast<std::byte *>(setting.pool.work());
    const auto *h = static_cast<const std::byte *>(setting.pool.conditioners());
    read_in_pieces(setting, h, others);
    for_pieces(setting.execution, others, [&](int64_t begin, int64_t end) {
      seen += read_all(h + begin * size, (end - begin) * size);
      compute_along<kOperations, true>(x + kKernel * begin * size, kKernel * (end - begin) * size);
    });
  });
}

// As norms and soft thresholds of floats and doubles do: squares are summed in doubles, and
// products are doubles, rounded, of what has been read some lines before.
template <bool kWrites, typename T>
Trial computing_in_doubles_of(const Setting &setting, int64_t numel) {
  static constexpr int64_t kNear = 1024;  // elements
  return limit_trial(setting, numel, kWrites ? 2 : 1, [setting, numel] {
    static std::atomic<int64_t> seen;
    auto *x = static_cast<T *>(setting.pool.work());
    for_pieces(setting.execution, numel, [&](int64_t begin, int64_t end) {
      double sum = 0;
      for (int64_t at = begin; at < end; at += kNear) {
        const int64_t count = std::min(kNear, end - at);
        sum += sum_squares_in_doubles(x + at, count);
        if (kWrites) scale_in_doubles(x + at, count, kFactor);
      }
      seen += sum > 0;
    });
  });
}

// The same where all squares are known before the first product, as those of many large blocks side by
// side.
template <typename T>
Trial computing_in_two_passes_of(const Setting &setting, int64_t numel) {
  return limit_trial(setting, numel, 3, [setting, numel] {
    static std::atomic<int64_t> seen;
    auto *x = static_cast<T *>(setting.pool.work());
    for_pieces(setting.execution, numel, [&](int64_t begin, int64_t end) {
      seen += sum_squares_in_doubles(x + begin, end - begin) > 0;
    });
    for_pieces(setting.execution, numel, [&](int64_t begin, int64_t end) {
      scale_in_doubles(x + begin, end - begin, kFactor);
    });
  });
}

// make(float()) or make(double()).
template <typename Make>
Trial of_floats_or_doubles(const Setting &setting, int64_t numel, Make make) {
  require_whole_grains(numel);
  const int32_t dtype = setting.pool.dtype().code;
  if (dtype == SPK_F32) return make(float());
  if (dtype == SPK_F64) return make(double());
  throw Skip("16-bit numbers are multiplied as floats");
}

template <bool kWrites>
Trial computing_in_doubles(const Setting &setting, int64_t numel) {
  return of_floats_or_doubles(setting, numel, [&](auto element) {
    return computing_in_doubles_of<kWrites, decltype(element)>(setting, numel);
  });
}

Trial computing_in_two_passes(const Setting &setting, int64_t numel) {
  return of_floats_or_doubles(setting, numel, [&](auto element) {
    return computing_in_two_passes_of<decltype(element)>(setting, numel);
  });
}

// As conditioned soft thresholds do, whose conditioners are checked before anything is written; but
// for what is done once a block: where that starts, how far a step goes, and when it is enough.
Trial computing_conditioned(const Setting &setting, int64_t numel) {
  if (setting.pool.dtype().code != SPK_F32) throw Skip("other dtypes take other steps");
  require_whole_grains(numel);
  constexpr bool kReadsConditioners = true;
  Trial trial = against_sweep(setting, numel * setting.pool.dtype().size, kReadsConditioners);
  trial.traffic = 4 * static_cast<double>(trial.bytes);
  trial.peak_bytes = [] { return int64_t{0}; };
  trial.operation = [setting, numel] {
    static std::atomic<int64_t> seen;
    auto *w = static_cast<float *>(setting.pool.work());
    const auto *h = static_cast<const float *>(setting.pool.conditioners());
    read_in_pieces(setting, h, numel);
    for_pieces(setting.execution, numel, [&](int64_t begin, int64_t end) {
      seen += conditioned_steps(w + begin, h + begin, end - begin) > 0;
    });
  };
  return trial;
}

// As norms of pairs do, and those of 3 x 3 kernels, which are few enough for caches; of f32 and f64,
// which have norms of their own size.
template <int kPer, bool kPastCaches>
Trial reading_and_writing_part(const Setting &setting, int64_t numel) {
  require_whole_grains(numel, kPer);
  const int64_t grains = numel / (kPer * kGrain);
  const int64_t bytes = kGrain * setting.pool.dtype().size;
  auto part = std::make_shared<Memory>(grains * bytes);
  return limit_trial(setting, numel, 1 + 1.0 / kPer, [setting, grains, bytes, part] {
    const auto *x = static_cast<const std::byte *>(setting.pool.work());
    auto *to = static_cast<std::byte *>(part->as());
    for_pieces(setting.execution, grains * kGrain, [&](int64_t begin, int64_t end) {
      const int64_t first = begin / kGrain * bytes;
      read_and_write_part<kPer, kPastCaches>(x + kPer * first, to + first,
                                             kPer * (end / kGrain * bytes - first));
    });
  });
}

// As tiles are visited, and coupled leaves, every other one of which is transposed. Calls
// fn(tile, bytes between its rows, bytes to what is visited soon after it) for the tiles that blocks
// have in all leaves: `first` for each of them, then `second`.
constexpr int64_t kTileSide = 64;
template <int64_t kLeaves, typename First, typename Second>
Trial visiting_tiles(const Setting &setting, int64_t numel, double times, First first,
                     Second second) {
  constexpr int64_t kTile = kTileSide;
  constexpr int64_t kAhead = 2 * kTile;
  const int64_t size = setting.pool.dtype().size;
  const Layout leaf = matrix(numel / kLeaves, kTile, kTile);
  const int64_t rows = leaf.shape[0];
  const int64_t cols = leaf.shape[1];
  return limit_trial(setting, kLeaves * leaf.numel(), times, [=] {
    const auto for_each_leaf = [&](int64_t row, int64_t col, auto fn) {
      auto *x = static_cast<std::byte *>(setting.pool.work());
      for (int64_t i = 0; i < kLeaves; ++i, x += rows * cols * size) {
        const bool turned = i % 2 == 1;
        fn(x + (turned ? col * rows + row : row * cols + col) * size, (turned ? rows : cols) * size,
           kAhead * (turned ? rows : 1) * size);
      }
    };
    for_each_in_pieces(setting, rows / kTile, [&](int64_t band) {
      for (int64_t col = 0; col < cols; col += kTile) {
        for_each_leaf(band * kTile, col, first);
        for_each_leaf(band * kTile, col, second);
      }
    });
  });
}

void ask_for(const std::byte *row, int64_t bytes) {
  constexpr int64_t kLine = 64;
  constexpr int kToRead = 0;
  constexpr int kIntoSecondCache = 2;
  for (int64_t at = 0; at < bytes; at += kLine) {
    __builtin_prefetch(row + at, kToRead, kIntoSecondCache);
  }
}

// As norms of tiles and of coupled leaves do.
template <int64_t kLeaves>
Trial reading_tiles(const Setting &setting, int64_t numel) {
  const int64_t bytes = kTileSide * setting.pool.dtype().size;
  const auto read = [bytes](const std::byte *tile, int64_t step, int64_t ahead) {
    static std::atomic<uint64_t> seen;
    uint64_t sum = 0;
    for (int64_t row = 0; row < kTileSide; ++row, tile += step) {
      ask_for(tile + ahead, bytes);
      sum += read_all(tile, bytes);
    }
    seen += sum;
  };
  return visiting_tiles<kLeaves>(setting, numel, 1, read, [](std::byte *, int64_t, int64_t) {});
}

// As thresholds of tiles and of coupled leaves do.
template <int64_t kLeaves>
Trial reading_and_sweeping_tiles(const Setting &setting, int64_t numel) {
  const int64_t bytes = kTileSide * setting.pool.dtype().size;
  const SweepLoop loop = sweep_loops(setting.pool.dtype()).vectors;
  const auto read = [bytes](const std::byte *tile, int64_t step, int64_t) {
    volatile uint64_t sink = read_rows(tile, kTileSide, step, bytes);
    static_cast<void>(sink);
  };
  const auto sweep = [loop, bytes](std::byte *tile, int64_t step, int64_t ahead) {
    for (int64_t row = 0; row < kTileSide; ++row, tile += step) {
      ask_for(tile + ahead, bytes);
      loop(tile, nullptr, kFactor, kTileSide);
    }
  };
  return visiting_tiles<kLeaves>(setting, numel, 2, read, sweep);
}

// The same with what soft thresholds of floats and doubles compute for each element.
template <int64_t kLeaves, typename T>
Trial computing_in_tiles_of(const Setting &setting, int64_t numel) {
  constexpr int64_t kElement = sizeof(T);
  const auto read = [](const std::byte *tile, int64_t step, int64_t) {
    const auto *x = reinterpret_cast<const T *>(tile);
    volatile double sink = sum_squares_of_rows(x, kTileSide, step / kElement, kTileSide);
    static_cast<void>(sink);
  };
  const auto write = [](std::byte *tile, int64_t step, int64_t ahead) {
    for (int64_t row = 0; row < kTileSide; ++row, tile += step) {
      ask_for(tile + ahead, kTileSide * kElement);
      scale_in_doubles(reinterpret_cast<T *>(tile), kTileSide, kFactor);
    }
  };
  return visiting_tiles<kLeaves>(setting, numel, 2, read, write);
}

template <int64_t kLeaves>
Trial computing_in_tiles(const Setting &setting, int64_t numel) {
  return of_floats_or_doubles(setting, numel, [&](auto element) {
    return computing_in_tiles_of<kLeaves, decltype(element)>(setting, numel);
  });
}

using MakeTrial = Trial (*)(const Setting &setting, int64_t numel);

Case limit(const char *operation, const char *layout, const LayoutFamily &family, MakeTrial make) {
  return {"limits",
          operation,
          layout,
          Figure::kRatio,
          std::nullopt,
          false,
          [&family, make](const Setting &setting) {
            return make(setting, family.fit(setting.pool.numel()).numel());
          }};
}

}  // namespace

// Of matrices, and of convolutions, which are fewer bytes.
std::vector<Case> limit_cases() {
  std::vector<Case> cases;
  const auto add = [&cases](const char *layout, const LayoutFamily &family) {
    cases.push_back(limit("reading alone", layout, family, reading));
    cases.push_back(limit("reading, then a sweep", layout, family, reading_and_sweep));
    cases.push_back(limit("copying", layout, family, copying));
    cases.push_back(limit("x *= h", layout, family, sweeping_by_another));
    cases.push_back(
        limit("reading h, then x *= h", layout, family, reading_another_and_sweeping_by_it));
  };
  const LayoutFamily &matrices = layout_family("elements");
  const LayoutFamily &convolutions = layout_family("conv kernels");
  add("contiguous", matrices);
  add("convolution", convolutions);
  cases.push_back(limit("reading alone", "at four places", matrices, reading_in_turn));
  cases.push_back(
      limit("reading alone", "convolution, at four places", convolutions, reading_in_turn));
  cases.push_back(limit("reading a ninth of h, then x *= it", "convolution", convolutions,
                        reading_ninth_and_sweeping_by_it));
  cases.push_back(limit("x *= half of h", "contiguous", matrices, sweeping_by_half<false>));
  cases.push_back(
      limit("reading half of h, then x *= it", "contiguous", matrices, sweeping_by_half<true>));
  cases.push_back(limit("reading all, writing half", "contiguous", matrices,
                        reading_and_writing_part<2, true>));
  cases.push_back(limit("reading all, writing a ninth", "convolution", convolutions,
                        reading_and_writing_part<9, false>));
  const auto add_arithmetic = [&](const char *operation, const char *layout, MakeTrial make) {
    cases.push_back(limit(operation, layout, matrices, make));
  };
  add_arithmetic("reading and arithmetic", "8 operations a line", computing_along<8, false>);
  add_arithmetic("reading and arithmetic", "16 operations a line", computing_along<16, false>);
  add_arithmetic("reading and arithmetic", "32 operations a line", computing_along<32, false>);
  add_arithmetic("reading and arithmetic", "48 operations a line", computing_along<48, false>);
  add_arithmetic("reading and arithmetic", "64 operations a line", computing_along<64, false>);
  add_arithmetic("sweep and arithmetic", "8 operations a line", computing_along<8, true>);
  add_arithmetic("sweep and arithmetic", "16 operations a line", computing_along<16, true>);
  add_arithmetic("sweep and arithmetic", "32 operations a line", computing_along<32, true>);
  add_arithmetic("sweep and arithmetic", "48 operations a line", computing_along<48, true>);
  add_arithmetic("sweep and arithmetic", "64 operations a line", computing_along<64, true>);
  add_arithmetic("sweep and arithmetic", "80 operations a line", computing_along<80, true>);
  add_arithmetic("sweep and arithmetic", "112 operations a line", computing_along<112, true>);
  add_arithmetic("sweep and arithmetic", "144 operations a line", computing_along<144, true>);
  const char *const by_each = "reading h, then computing by it";
  add_arithmetic(by_each, "16 operations a line", computing_by<16, 1>);
  add_arithmetic(by_each, "48 operations a line", computing_by<48, 1>);
  add_arithmetic(by_each, "80 operations a line", computing_by<80, 1>);
  add_arithmetic(by_each, "112 operations a line", computing_by<112, 1>);
  const char *const by_half = "reading half of h, then computing by it";
  add_arithmetic(by_half, "16 operations a line", computing_by<16, 2>);
  add_arithmetic(by_half, "48 operations a line", computing_by<48, 2>);
  add_arithmetic(by_half, "80 operations a line", computing_by<80, 2>);
  add_arithmetic(by_half, "112 operations a line", computing_by<112, 2>);
  add_arithmetic(by_half, "144 operations a line", computing_by<144, 2>);
  const auto add_by_ninth = [&](const char *layout, MakeTrial make) {
    cases.push_back(limit("reading a ninth of h, then computing", layout, convolutions, make));
  };
  add_by_ninth("16 operations a line", computing_by_ninth<16>);
  add_by_ninth("48 operations a line", computing_by_ninth<48>);
  add_by_ninth("80 operations a line", computing_by_ninth<80>);
  add_by_ninth("112 operations a line", computing_by_ninth<112>);
  add_arithmetic("squares", "in doubles", computing_in_doubles<false>);
  add_arithmetic("squares, then products", "in doubles", computing_in_doubles<true>);
  add_arithmetic("all squares, then all products", "in doubles", computing_in_two_passes);
  cases.push_back(limit("all squares, then all products", "in doubles, convolution", convolutions,
                        computing_in_two_passes));
  cases.push_back(
      limit("squares", "in doubles, convolution", convolutions, computing_in_doubles<false>));
  cases.push_back(limit("squares, then products", "in doubles, convolution", convolutions,
                        computing_in_doubles<true>));
  add_arithmetic("reading h, then two steps and a write", "in floats and doubles",
                 computing_conditioned);
  const auto add_tiles = [&](const char *layout, MakeTrial read, MakeTrial sweep,
                             MakeTrial compute) {
    cases.push_back(limit("reading, tile by tile", layout, matrices, read));
    cases.push_back(limit("reading, then x *= a, by tiles", layout, matrices, sweep));
    cases.push_back(limit("squares, then products, by tiles", layout, matrices, compute));
  };
  add_tiles("tiles 64x64", reading_tiles<1>, reading_and_sweeping_tiles<1>, computing_in_tiles<1>);
  add_tiles("2 coupled leaves", reading_tiles<2>, reading_and_sweeping_tiles<2>,
            computing_in_tiles<2>);
  add_tiles("4 coupled leaves", reading_tiles<4>, reading_and_sweeping_tiles<4>,
            computing_in_tiles<4>);
  return cases;
}

}  // namespace bench
