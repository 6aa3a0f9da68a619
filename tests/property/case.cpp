#include "case.hpp"

#include <algorithm>

namespace prop {

namespace {

std::string last_error() {
  char text[SPK_MESSAGE_SIZE];
  spk_last_error_copy(text, sizeof text, nullptr);
  return text;
}

std::string context_text(const spk_context *context) {
  return "executor " + std::to_string(spk_context_executor(context)) + ", threads " +
         std::to_string(spk_context_threads(context)) + (context == nullptr ? " (NULL)" : "");
}

}  // namespace

Contexts::Contexts() {
  for (int32_t executor : {SPK_EXECUTOR_SERIAL, SPK_EXECUTOR_TBB, SPK_EXECUTOR_OPENMP}) {
    if (spk_executor_available(executor) == 0) continue;
    const int32_t most = executor == SPK_EXECUTOR_SERIAL ? 1 : 4;
    for (int32_t threads = 1; threads <= most; ++threads) {
      spk_context_options options = {};
      options.struct_size = sizeof options;
      options.executor = executor;
      options.threads = threads;
      ContextHandle context;
      if (spk_context_create(&options, context.out()) != SPK_OK) {
        throw std::runtime_error("cannot create a context: " + last_error());
      }
      contexts_.push_back(std::move(context));
    }
  }
}

spk_context *Contexts::draw(Random &random) const {
  const int64_t choice = random.between(-1, handles() - 1);
  spk_context *context = choice < 0 ? nullptr : contexts_[static_cast<size_t>(choice)].get();
  if (random.one_in(500)) spk_context_trim(context);
  return context;
}

Case::Case(uint64_t seed, int dtype_wanted, LayoutClass class_wanted, bool is_large, bool talking,
           const Contexts &contexts)
    : random(seed),
      dtype(dtype_wanted),
      layout_class(class_wanted),
      large(is_large),
      contexts_(contexts),
      talking_(talking) {}

Memory &Case::memory(size_t bytes) {
  return memories_.emplace_back(random, bytes);
}

Buffer &Case::add(Buffer buffer) {
  return buffers_.emplace_back(std::move(buffer));
}

Buffer &Case::array(const std::string &label, int array_dtype, int64_t count) {
  const size_t size = static_cast<size_t>(element_size(array_dtype));
  const size_t first = size * static_cast<size_t>(random.between(0, 9));
  const size_t after = size * static_cast<size_t>(random.between(0, 3));
  Memory &home = memory(first + size * static_cast<size_t>(count) + after);
  const int layout = random.pick({SPK_LAYOUT_VIEW, SPK_LAYOUT_CONTIGUOUS});
  return add(Buffer(label, home, first, array_dtype, layout, contiguous_layout({count}), count));
}

std::string Case::description() const {
  std::string text = notes_;
  for (const Buffer &buffer : buffers_) text += "    " + buffer.text() + "\n";
  return text;
}

spk_status Case::call(const std::function<spk_status(spk_context *)> &work) {
  for (Memory &memory : memories_) memory.arm();
  spk_context *context = contexts_.draw(random);
  const spk_status status = work(context);
  if (!random.one_in(large ? 2 : 8)) return status;

  std::vector<std::vector<unsigned char>> first;
  for (Memory &memory : memories_) {
    first.push_back(memory.live);
    // The bytes move back into place: the library must not see another address.
    std::copy(memory.before.begin(), memory.before.end(), memory.live.begin());
  }
  spk_context *other = contexts_.draw(random);
  const spk_status again = work(other);
  const std::string contexts = context_text(context) + " against " + context_text(other);
  same("status with " + contexts, status, again);
  for (size_t m = 0; m < first.size(); ++m) {
    const Memory &memory = memories_[m];
    const auto differs = std::mismatch(first[m].begin(), first[m].end(), memory.live.begin());
    if (differs.first == first[m].end()) continue;
    const size_t byte = static_cast<size_t>(differs.first - first[m].begin());
    mismatch("two contexts, two results (" + contexts + "): " + where(memory, byte));
  }
  return status;
}

void Case::run(const std::function<spk_status(spk_context *)> &work) {
  require(call(work), "the call");
}

void Case::require(spk_status status, const std::string &what) {
  if (status == SPK_OK) return;
  mismatch(what + " returned " + spk_status_string(status) + ": " + last_error());
}

void Case::verify() {
  for (const Memory &memory : memories_) {
    const auto differs =
        std::mismatch(memory.live.begin(), memory.live.end(), memory.expect.begin());
    if (differs.first == memory.live.end()) continue;
    mismatch(where(memory, static_cast<size_t>(differs.first - memory.live.begin())));
  }
}

std::string Case::where(const Memory &memory, size_t byte) const {
  for (const Buffer &buffer : buffers_) {
    const int64_t index = buffer.element_at(memory, byte);
    if (index < 0) continue;
    const auto now = buffer.bits_in(memory.live, index);
    const auto should = buffer.bits_in(memory.expect, index);
    const auto was = buffer.bits_in(memory.before, index);
    std::string text = buffer.label() + "[" + std::to_string(index) + "]: expected ";
    if (is_float_dtype(buffer.dtype())) {
      text += show(decode(buffer.dtype(), should)) + ", got " + show(decode(buffer.dtype(), now)) +
              ", was " + show(decode(buffer.dtype(), was)) + ";";
    }
    return text + " bits expected " + show_bits(should) + ", got " + show_bits(now) + ", was " +
           show_bits(was);
  }
  return "byte " + std::to_string(byte) + " of an allocation of " +
         std::to_string(memory.live.size()) + ", which no view reaches, was written";
}

void mismatch(const std::string &what, int64_t index, double expected, double got) {
  throw Mismatch(what + "[" + std::to_string(index) + "]: expected " + show(expected) + ", got " +
                 show(got));
}

void mismatch(const std::string &what) {
  throw Mismatch(what);
}

void same(const std::string &what, int64_t expected, int64_t got) {
  if (expected == got) return;
  throw Mismatch(what + ": expected " + std::to_string(expected) + ", got " + std::to_string(got));
}

spk_report junk_report() {
  return {sizeof(spk_report), -77, -78, -79, -80, -81};
}

}  // namespace prop
