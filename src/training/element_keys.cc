#include "training/element_keys.h"

#include <atomic>
#include <cmath>

#include "base/dtype.h"
#include "core/nest.h"
#include "core/scope_scores.h"
#include "core/select_stream.h"
#include "core/tile.h"

namespace spk {
namespace {

// The positions of a layer in boxes that suit the layout of what is read; in runs, if that is
// contiguous.
class PositionBoxes {
 public:
  PositionBoxes(const Extents &shape, const GridArray &values, const GridArray &second = {})
      : shape_(shape),
        flat_(is_contiguous(values) && (!second.data || is_contiguous(second))),
        tiles_(make_tiles(values)) {}

  int64_t count() const { return tiles_.count(); }
  Rect operator[](int64_t i) const { return tiles_[i]; }

  // An array of the layer, and a contiguous one, as they are seen from the boxes.
  GridArray seen(const GridArray &array) const {
    if (!flat_) return array;
    return {array.data, array.dtype, {size_of(array.dtype)}};
  }
  GridArray contiguous(const void *data, int64_t size) const {
    auto *bytes = static_cast<std::byte *>(const_cast<void *>(data));
    if (flat_) return {bytes, 0, {size}};
    return {bytes, 0, shape_.row_major().times(size)};
  }

 private:
  bool is_contiguous(const GridArray &array) const {
    return is_run(shape_, array.step, size_of(array.dtype));
  }
  Tiling make_tiles(const GridArray &values) const {
    const Extents shape = flat_ ? Extents{shape_.product()} : shape_;
    return Tiling(shape, seen(values).step, 1, kTileElements);
  }

  Extents shape_;
  bool flat_;
  Tiling tiles_;
};

// Copies a box between an array and a local one; the first steps are those of where it goes.
void copy_box(const Rect &rect, int64_t size, const Extents &to_step, std::byte *to,
              const Extents &from_step, const std::byte *from) {
  Nest nest;
  for (int d = 0; d < rect.extent.size(); ++d) {
    nest.add(rect.extent[d], to_step[d], from_step[d]);
  }
  nest.compile();
  nest.pad_to(1);
  copy_nest(nest, size, from, to);
}

std::byte *place_of(const Rect &rect, const GridArray &array) {
  return array.data + dot(rect.low, array.step);
}

// The entries of a box, one after the other: where they are, or copied.
const std::byte *gathered(Scratch &scratch, const Rect &rect, const GridArray &array,
                          int64_t size) {
  const std::byte *from = place_of(rect, array);
  if (is_run(rect.extent, array.step, size)) return from;
  auto *local = scratch.take<std::byte>(rect.count() * size);
  copy_box(rect, size, rect.extent.row_major().times(size), local, array.step, from);
  return local;
}

const uint8_t *gathered_mask(Scratch &scratch, const PositionBoxes &boxes, const Rect &rect,
                             const uint8_t *mask) {
  const std::byte *bytes = gathered(scratch, rect, boxes.contiguous(mask, 1), 1);
  return reinterpret_cast<const uint8_t *>(bytes);
}

// Lets fn(out) write the entries of a box, one after the other, to their places in an array.
template <typename Fn>
void write_box(Scratch &scratch, const Rect &rect, const GridArray &array, int64_t size, Fn &&fn) {
  std::byte *to = place_of(rect, array);
  if (is_run(rect.extent, array.step, size)) return fn(to);
  auto *local = scratch.take<std::byte>(rect.count() * size);
  fn(local);
  copy_box(rect, size, array.step, to, rect.extent.row_major().times(size), local);
}

const double *doubles_of(const Kernels &kernels, Scratch &scratch, const PositionBoxes &boxes,
                         const Rect &rect, const Magnitudes &magnitudes) {
  const int64_t n = rect.count();
  double *numbers = scratch.take<double>(n);
  load(kernels, rect, boxes.seen(magnitudes.values), numbers);
  if (!magnitudes.second.data) return numbers;
  double *second = scratch.take<double>(n);
  load(kernels, rect, boxes.seen(magnitudes.second), second);
  kernels.adam_momentum(numbers, second, n, numbers);
  return numbers;
}

const void *words_of(const Kernels &kernels, Scratch &scratch, const PositionBoxes &boxes,
                     const Rect &rect, const Magnitudes &magnitudes) {
  if (magnitudes.in_doubles()) return doubles_of(kernels, scratch, boxes, rect, magnitudes);
  return gathered(scratch, rect, boxes.seen(magnitudes.values), size_of(magnitudes.dtype()));
}

}  // namespace

Magnitudes magnitudes_of(const LeafData &data) {
  return {elements_of(data), {}};
}

Magnitudes magnitudes_of(double *numbers) {
  return {{reinterpret_cast<std::byte *>(numbers), SPK_F64, {sizeof(double)}}, {}};
}

Magnitudes momentum_of(const CallLayer &layer) {
  if (!layer.adam_m1.origin) return magnitudes_of(layer.momentum);
  return {elements_of(layer.adam_m1), elements_of(layer.adam_m2)};
}

std::byte *take_keys(Call &call, KeyWidth width, int64_t n) {
  return call.scratch().take<std::byte>(n * bytes_of(width));
}

int64_t write_keys(Call &call, const Extents &shape, const Magnitudes &magnitudes,
                   const uint8_t *mask, Among among, std::byte *keys) {
  const Kernels &kernels = call.kernels();
  const KeyForm form = KeyForm::of_elements(magnitudes.dtype());
  const auto kernel =
      among == Among::kActive ? kernels.active_keys[form.width] : kernels.inactive_keys[form.width];
  const PositionBoxes boxes(shape, magnitudes.values, magnitudes.second);
  const GridArray out = boxes.contiguous(keys, form.bytes());
  std::atomic<int64_t> competing{0};
  call.for_each(boxes.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = boxes[i];
    const void *words = words_of(kernels, scratch, boxes, rect, magnitudes);
    const uint8_t *active = gathered_mask(scratch, boxes, rect, mask);
    write_box(scratch, rect, out, form.bytes(), [&](std::byte *to) {
      competing += kernel({words, active, rect.count(), form.rule, to});
    });
  });
  return competing;
}

double mean_magnitude(Call &call, const Extents &shape, const Magnitudes &magnitudes,
                      const uint8_t *mask, int64_t count) {
  const Scratch::Frame frame(call.scratch());
  const PositionBoxes boxes(shape, magnitudes.values, magnitudes.second);
  double *sums = call.scratch().take<double>(boxes.count());
  call.for_each(boxes.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = boxes[i];
    const double *numbers = doubles_of(call.kernels(), scratch, boxes, rect, magnitudes);
    const uint8_t *active = gathered_mask(scratch, boxes, rect, mask);
    sums[i] = call.kernels().sum_active(numbers, active, rect.count());
  });
  double sum = 0.0;
  for (int64_t i = 0; i < boxes.count(); ++i) sum += sums[i];
  const double mean = sum / static_cast<double>(count);
  return std::isfinite(mean) ? mean : 0.0;
}

void write_nonzero(Call &call, const Extents &shape, const GridArray &values, uint8_t *mask) {
  const KeyForm form = KeyForm::of_elements(values.dtype);
  const PositionBoxes boxes(shape, values);
  const GridArray out = boxes.contiguous(mask, 1);
  call.for_each(boxes.count(), [&](Scratch &scratch, int64_t i) {
    const Rect rect = boxes[i];
    const void *words = gathered(scratch, rect, boxes.seen(values), form.bytes());
    write_box(scratch, rect, out, 1, [&](std::byte *to) {
      form.kernels(call.kernels())
          .keep({words, rect.count(), form.rule}, 1, reinterpret_cast<uint8_t *>(to));
    });
  });
}

void keep_largest(Call &call, KeyWidth width, const std::byte *keys, int64_t n, int64_t k,
                  uint8_t *mask) {
  const KeyArray all(call.kernels(), width, keys, n);
  const Selection selection = select_top(call, all, k, SPK_TIES_BY_POSITION);
  keep_selected(call, width, keys, 0, n, selection, mask);
}

void keep_selected(Call &call, KeyWidth width, const std::byte *keys, int64_t first, int64_t n,
                   const Selection &selection, uint8_t *mask) {
  const KeyArray some(call.kernels(), width, keys, n);
  call.for_each(some.chunks(), [&](Scratch &scratch, int64_t i) {
    const KeyArray::Chunk chunk = some.chunk(i);
    some.words(scratch, chunk).keep(selection, first + chunk.first, mask + chunk.first);
  });
}

void zero_inactive(Call &call, const Extents &shape, const GridArray &values, const uint8_t *mask) {
  const auto kernel = call.kernels().mask[index_of_dtype(values.dtype)];
  const int64_t size = size_of(values.dtype);
  const PositionBoxes boxes(shape, values);
  const GridArray all = boxes.seen(values);
  const GridArray keep = boxes.contiguous(mask, 1);
  call.for_each(boxes.count(), [&](Scratch &, int64_t i) {
    const Rect rect = boxes[i];
    Nest nest;
    for (int d = 0; d < rect.extent.size(); ++d) {
      nest.add(rect.extent[d], all.step[d], all.step[d], keep.step[d]);
    }
    nest.compile();
    nest.pad_to(1);
    ScaleArgs args{};
    args.n = nest[0].extent;
    args.x_step = nest[0].step[0] / size;
    args.y_step = args.x_step;
    args.factor_step = nest[0].step[2];
    args.rows = 1;
    args.groups = 1;
    nest.for_each_outer(1, [&](const int64_t *offset) {
      args.y = place_of(rect, all) + offset[0];
      args.x = args.y;
      args.factor = place_of(rect, keep) + offset[2];
      kernel(args);
    });
  });
}

}  // namespace spk
