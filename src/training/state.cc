#include "training/state.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/dtype.h"
#include "base/error.h"

namespace spk {
namespace {

// A blob: magic, version, length of all of it, the state, CRC-32 of all before. Numbers are little
// endian.
constexpr std::string_view kMagic = "SPKMASK\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kLengthAt = kMagic.size() + sizeof(uint32_t);
constexpr size_t kHeader = kLengthAt + sizeof(uint64_t);
constexpr size_t kChecksum = sizeof(uint32_t);

// The CRC-32 of Ethernet and zlib. States are small: bit by bit is fast enough.
uint32_t crc32(std::span<const std::byte> bytes) {
  uint32_t crc = 0xffffffff;
  for (const std::byte byte : bytes) {
    crc ^= static_cast<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

// --- writing ----------------------------------------------------------------------------------

class Writer {
 public:
  template <typename T>
  void put(T number) {
    uint64_t bits = 0;
    if constexpr (std::is_same_v<T, double>) {
      bits = std::bit_cast<uint64_t>(number);
    } else {
      bits = static_cast<uint64_t>(number);
    }
    for (size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<std::byte>(bits >> 8 * i));
  }
  void put_text(std::string_view text) {
    for (const char c : text) put(static_cast<uint8_t>(c));
  }

  // The bytes, once the length is known.
  std::vector<std::byte> finish() {
    uint64_t length = bytes_.size() + kChecksum;
    for (size_t i = 0; i < sizeof length; ++i) {
      bytes_[kLengthAt + i] = static_cast<std::byte>(length >> 8 * i);
    }
    put(crc32(bytes_));
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

void write_layer(Writer &out, const MaskedLayer &layer) {
  out.put(static_cast<uint32_t>(layer.name.size()));
  out.put_text(layer.name);
  out.put(layer.view->dtype);
  out.put(static_cast<int32_t>(layer.rank()));
  for (const int64_t extent : layer.view->shape) out.put(extent);
  out.put(static_cast<int32_t>(layer.membership));
  out.put(layer.nonzeros);
  out.put(layer.requested_density);
  out.put(layer.draws);
  out.put(layer.last.statistic);
  out.put(layer.last.rate);
  out.put(layer.last.requested_removed);
  out.put(layer.last.removed);
  out.put(layer.last.requested_grown);
  out.put(layer.last.grown);
}

// --- reading ----------------------------------------------------------------------------------

[[noreturn]] void refuse(std::string_view why) {
  fail(SPK_INVALID_ARGUMENT, "blob: ", why);
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <typename T>
  T get() {
    uint64_t bits = 0;
    const auto bytes = take(sizeof(T));
    for (size_t i = 0; i < sizeof(T); ++i) bits |= static_cast<uint64_t>(bytes[i]) << 8 * i;
    if constexpr (std::is_same_v<T, double>) {
      return std::bit_cast<double>(bits);
    } else {
      return static_cast<T>(bits);
    }
  }
  std::string_view get_text(size_t size) {
    const auto bytes = take(size);
    return {reinterpret_cast<const char *>(bytes.data()), size};
  }
  // A number that must be in [low, high].
  template <typename T>
  T get_in(T low, T high, const char *what) {
    const T number = get<T>();
    if (!(number >= low && number <= high)) {
      fail(SPK_INVALID_ARGUMENT, "blob: ", what, ": got ", number, ", expected ", low, " to ",
           high);
    }
    return number;
  }
  double get_finite(const char *what) {
    const auto number = get<double>();
    if (!std::isfinite(number)) {
      fail(SPK_INVALID_ARGUMENT, "blob: ", what, ": got ", number, ", expected a finite number");
    }
    return number;
  }
  // A number that must be what the masking has.
  template <typename T>
  void expect(T wanted, const char *what) {
    const T number = get<T>();
    if (number != wanted) {
      fail(SPK_INVALID_ARGUMENT, "blob: ", what, ": got ", number, ", expected ", wanted,
           " as in the masking");
    }
  }
  bool empty() const { return left_.empty(); }

 private:
  std::span<const std::byte> take(size_t size) {
    if (size > left_.size()) refuse("got one that ends too early");
    const auto bytes = left_.first(size);
    left_ = left_.subspan(size);
    return bytes;
  }

  std::span<const std::byte> left_;
};

// What a state changes.
struct State {
  uint64_t seed;
  int64_t position;
  bool initialised;
  int64_t baseline;
  Residuals residuals;
  std::vector<MaskedLayer> layers;
};

// The state inside a whole blob.
std::span<const std::byte> checked_body(std::span<const std::byte> blob) {
  if (blob.size() < kHeader + kChecksum) refuse("got too few bytes for a saved state");
  Reader header(blob);
  if (header.get_text(kMagic.size()) != kMagic) refuse("got something else than a saved state");
  const auto version = header.get<uint32_t>();
  if (version != kVersion) {
    fail(SPK_INVALID_ARGUMENT, "blob: version: got ", version, ", expected ", kVersion);
  }
  const auto length = header.get<uint64_t>();
  if (length != blob.size()) {
    fail(SPK_INVALID_ARGUMENT, "blob: length: got ", blob.size(), " bytes, expected ", length);
  }
  const auto checked = blob.first(blob.size() - kChecksum);
  if (Reader(blob.last(kChecksum)).get<uint32_t>() != crc32(checked)) {
    refuse("got a damaged one: its checksum is wrong");
  }
  return checked.subspan(kHeader);
}

// Layers must be those that the masking has.
MaskedLayer read_layer(Reader &in, int32_t id, const MaskedLayer &own) {
  const auto name = in.get_text(in.get<uint32_t>());
  if (name != own.name) {
    fail(SPK_INVALID_ARGUMENT, "blob: layers[", id, "]: got \"", shortened(std::string(name)),
         "\", expected \"", shortened(own.name), "\" as in the masking");
  }
  MaskedLayer layer = own;
  in.expect(own.view->dtype, "dtype");
  in.expect(static_cast<int32_t>(own.rank()), "ndim");
  for (const int64_t extent : own.view->shape) in.expect(extent, "shape");
  const int64_t n = own.numel();
  layer.membership = static_cast<Membership>(in.get_in<int32_t>(0, 2, "membership"));
  layer.nonzeros = in.get_in<int64_t>(0, n, "nonzeros");
  layer.requested_density = in.get_in(0.0, 2.0, "requested density");
  layer.draws = in.get<uint64_t>();
  layer.last.statistic = in.get_in(0.0, 2.0, "statistic");
  layer.last.rate = in.get_in(0.0, 1.0, "rate");
  // Whole kernels may be more than the layer has.
  layer.last.requested_removed = in.get_in<int64_t>(0, 2 * n, "requested removed");
  layer.last.removed = in.get_in<int64_t>(-n, n, "removed");
  layer.last.requested_grown = in.get_in<int64_t>(0, 2 * n, "requested grown");
  layer.last.grown = in.get_in<int64_t>(-n, n, "grown");
  return layer;
}

void expect_modes(Reader &in, const Masking &masking) {
  const spk_masking_options &o = masking.options;
  in.expect(o.prune, "prune mode");
  in.expect(o.redistribute, "redistribute mode");
  in.expect(o.grow, "grow mode");
  in.expect(o.dense_gradients, "dense_gradients");
  in.expect(static_cast<int32_t>(masking.schedule->kind()), "kind of schedule");
}

State read_state(std::span<const std::byte> body, const Masking &masking) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Reader in(body);
  State state{};
  expect_modes(in, masking);
  state.seed = in.get<uint64_t>();
  state.position = in.get_in<int64_t>(0, kMost, "position");
  state.initialised = in.get_in<int32_t>(0, 1, "initialised") != 0;
  state.baseline = in.get_in<int64_t>(0, kMost, "baseline");
  state.residuals.sum = in.get_finite("residuals");
  state.residuals.count = in.get_in<int64_t>(0, kMost / 2, "updates");
  state.residuals.adjusted_growth = in.get_finite("adjusted growth");
  in.expect(masking.count(), "number of layers");
  state.layers.reserve(masking.layers.size());
  for (int32_t id = 0; id < masking.count(); ++id) {
    state.layers.push_back(read_layer(in, id, masking.layer(id)));
  }
  if (!in.empty()) refuse("got more bytes than the state has");
  return state;
}

}  // namespace

std::vector<std::byte> save(const Masking &masking) {
  const spk_masking_options &o = masking.options;
  Writer out;
  out.put_text(kMagic);
  out.put(kVersion);
  out.put(uint64_t{0});  // the length
  out.put(o.prune);
  out.put(o.redistribute);
  out.put(o.grow);
  out.put(o.dense_gradients);
  out.put(static_cast<int32_t>(masking.schedule->kind()));
  out.put(o.seed);
  out.put(masking.schedule->position);
  out.put(int32_t{masking.initialised ? 1 : 0});
  out.put(masking.baseline);
  out.put(masking.residuals.sum);
  out.put(masking.residuals.count);
  out.put(masking.residuals.adjusted_growth);
  out.put(masking.count());
  for (const MaskedLayer &layer : masking.layers) write_layer(out, layer);
  return out.finish();
}

void restore(Masking &masking, std::span<const std::byte> blob) {
  const MaskingUse use(masking);
  State state = read_state(checked_body(blob), masking);
  masking.options.seed = state.seed;
  masking.schedule->position = state.position;
  masking.initialised = state.initialised;
  masking.baseline = state.baseline;
  masking.residuals = state.residuals;
  masking.layers = std::move(state.layers);
}

}  // namespace spk
