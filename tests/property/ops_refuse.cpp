// Refusals: one fault in an otherwise valid call. The status and the whole message are worked out
// here, and no byte may have changed.
#include <limits>
#include <string>

#include "operations.hpp"

namespace prop {

namespace {

std::string number(int64_t value) {
  return std::to_string(value);
}

std::string name_of(int dtype) {
  switch (dtype) {
    case SPK_F32:
      return "f32";
    case SPK_F64:
      return "f64";
    case SPK_F16:
      return "f16";
    default:
      return "bf16";
  }
}

struct Refusal {
  spk_status status = SPK_OK;
  std::string message;
};

void expect_refusal(Case &c, const Refusal &expected, spk_status got) {
  char message[SPK_MESSAGE_SIZE];
  const spk_status last = spk_last_error_copy(message, sizeof message, nullptr);
  c.note([&] { return "expects " + expected.message; });
  if (got != expected.status || last != expected.status || expected.message != message) {
    mismatch(std::string("refusal: got ") + spk_status_string(got) + ": " + message);
  }
}

// What can be wrong with the buffers of a call that reads leaves and writes scores.
struct Buffers {
  std::vector<spk_buffer> leaves;
  int32_t nleaves;
  double p = 2.0;
  spk_buffer out;
};

// The element size of a leaf, by the low byte of its dtype.
int64_t size_of(int dtype) {
  return (dtype & 0xff) / 8;
}

// Breaks one thing, and tells what the library has to say.
Refusal break_buffers(Case &c, const LeafSet &leaves, Buffers *call) {
  const auto leaf = static_cast<size_t>(c.random.between(0, call->nleaves - 1));
  spk_buffer &buffer = call->leaves[leaf];
  const std::string where = "leaves[" + number(static_cast<int64_t>(leaf)) + "]: ";
  switch (c.random.between(0, 7)) {
    case 0: {
      const int64_t needed = leaves[leaf].layout().reach();
      buffer.numel = needed - c.random.between(1, needed);
      return {SPK_OUT_OF_BOUNDS, where + "numel: got " + number(buffer.numel) +
                                     ", expected at least " + number(needed)};
    }
    case 1: {
      const int right = buffer.dtype;
      while (buffer.dtype == right) {
        buffer.dtype = c.random.pick({SPK_F32, SPK_F64, SPK_F16, SPK_BF16});
      }
      return {SPK_UNSUPPORTED_DTYPE, where + "dtype: got " + name_of(buffer.dtype) + " (code " +
                                         number(buffer.dtype) + "), expected " + name_of(right)};
    }
    case 2:
      buffer.data = nullptr;
      return {SPK_INVALID_ARGUMENT, where + "data: got NULL"};
    case 3: {
      const int64_t size = size_of(buffer.dtype);
      const int64_t past = c.random.between(1, size - 1);
      buffer.data = static_cast<char *>(buffer.data) + past;
      return {SPK_INVALID_ARGUMENT, where + "data: got an address that is " + number(past) +
                                        " past a multiple of " + number(size) +
                                        ", expected one aligned to the element size of " +
                                        name_of(buffer.dtype)};
    }
    case 4:
      buffer.layout = static_cast<int32_t>(c.random.between(3, 9));
      return {SPK_INVALID_ARGUMENT, where + "layout: got " + number(buffer.layout) +
                                        ", expected SPK_LAYOUT_VIEW, _CONTIGUOUS or _OWN"};
    case 5: {
      const int32_t right = call->nleaves;
      call->nleaves += static_cast<int32_t>(c.random.pick({-1, 1, 2}));
      return {SPK_SHAPE_MISMATCH, "leaves: got " + number(call->nleaves) + " buffers, expected " +
                                      number(right) + ", one per leaf"};
    }
    case 6: {
      const int64_t right = call->out.numel;
      call->out.numel += c.random.pick({-1, 1, 5});
      return {SPK_SHAPE_MISMATCH,
              "out: numel: got " + number(call->out.numel) + ", expected " + number(right)};
    }
    default: {
      const int64_t p = c.random.pick({-3, -1, 1001, 5000});
      call->p = static_cast<double>(p);
      return {SPK_INVALID_ARGUMENT,
              "p: got " + number(p) + ", expected 0, 1, 2, inf, -inf or 0.01 to 1000"};
    }
  }
}

void refuse_buffers(Case &c) {
  const BlockSubject s = make_block(c, {64, 1000});
  const LeafSet leaves = make_leaves(c, s.model.leaves, "leaf");
  fill_leaves(c, leaves);
  Buffer &out = c.array("out", s.model.score_dtype(), s.model.numblk());
  Refusal expected;
  bool broken = false;
  Buffers call;
  const spk_status got = c.call([&](spk_context *context) {
    // Addresses are final only now; the fault stays the same if the call is repeated.
    if (!broken) {
      call = {{leaves.api(), leaves.api() + leaves.count()}, leaves.count(), 2.0, out.api()};
      expected = break_buffers(c, leaves, &call);
      broken = true;
    }
    return spk_block_norms(context, s.handle.get(), call.leaves.data(), call.nleaves, call.p,
                           &call.out);
  });
  expect_refusal(c, expected, got);
  c.verify();
}

void refuse_thresholds(Case &c) {
  const BlockSubject s = make_block(c, {64, 1000});
  const LeafSet leaves = make_leaves(c, s.model.leaves, "leaf");
  fill_leaves(c, leaves);
  Buffer &thresholds = c.array("thresholds", SPK_F64, s.model.numblk());
  for (int64_t i = 0; i < thresholds.numel(); ++i) thresholds.set(i, 1);
  const int64_t at = c.random.between(0, thresholds.numel() - 1);
  const bool nan = c.random.one_in(2);
  const int64_t negative = -c.random.between(1, 9);
  thresholds.set(at,
                 nan ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(negative));
  const Refusal expected = {SPK_INVALID_ARGUMENT, "thresholds[" + number(at) + "]: got " +
                                                      (nan ? "NaN, expected a number"
                                                           : number(negative) + ", expected >= 0")};
  const spk_status got = c.call([&](spk_context *context) {
    const spk_buffer api = thresholds.api();
    return spk_block_soft_threshold(context, s.handle.get(), leaves.api(), nullptr, leaves.count(),
                                    &api, nullptr, nullptr);
  });
  expect_refusal(c, expected, got);
  c.verify();
}

void refuse_counts(Case &c) {
  const ScopeSubject s = make_scope(c, 1, {64, 1000});
  const Weights weights = make_weights(c, s);
  const int64_t scopes = s.model.numscope();
  const int64_t most = s.model.numblk_per_scope();
  std::vector<int64_t> counts(static_cast<size_t>(scopes), most);
  Refusal expected;
  if (c.random.one_in(3)) {
    counts.resize(static_cast<size_t>(scopes + c.random.between(1, 3)), 0);
    expected = {SPK_SHAPE_MISMATCH,
                "counts: got " + number(static_cast<int64_t>(counts.size())) +
                    " numbers, expected 1" +
                    (scopes == 1 ? "" : " or " + number(scopes) + ", one per scope")};
  } else {
    const int64_t at = c.random.between(0, scopes - 1);
    const int64_t wrong =
        c.random.one_in(2) ? most + c.random.between(1, 5) : -c.random.between(1, 5);
    counts[static_cast<size_t>(at)] = wrong;
    expected = {SPK_INVALID_ARGUMENT, "counts[" + number(at) + "]: got " + number(wrong) +
                                          ", expected 0 to " + number(most)};
  }
  const spk_status got = c.call([&](spk_context *context) {
    return spk_scope_keep_top(context, s.handle.get(), weights.leaves(), weights.into(),
                              weights.count(), counts.data(), static_cast<int64_t>(counts.size()),
                              nullptr, nullptr);
  });
  expect_refusal(c, expected, got);
  c.verify();
}

// A shape that cuts `whole` everywhere but in one dimension.
struct BadCut {
  Dims shape;
  std::string message;
};

BadCut bad_cut(Case &c, const std::string &what, const Dims &whole) {
  const auto d = static_cast<size_t>(c.random.between(0, static_cast<int64_t>(whole.size()) - 1));
  BadCut result{Dims(whole.size(), 1), {}};
  int64_t part = whole[d] + c.random.between(1, 4);
  for (int64_t smaller = 2; smaller < whole[d]; ++smaller) {
    if (whole[d] % smaller != 0 && c.random.one_in(2)) part = smaller;
  }
  result.shape[d] = part;
  result.message = what + ": dim " + number(static_cast<int64_t>(d)) + ": size " +
                   number(whole[d]) + " is not divisible by " + number(part);
  return result;
}

void refuse_shapes(Case &c) {
  const BlockSubject s = make_block(c, {64, 1000});
  const LeafModel &leaf = s.model.leaves[0];
  const BadCut block = bad_cut(c, "block shape", leaf.view.shape);
  BlockHandle no_block;
  spk_status got = spk_block_create(spk_block_leaf_view(s.handle.get(), 0),
                                    static_cast<int32_t>(block.shape.size()), block.shape.data(),
                                    nullptr, no_block.out());
  expect_refusal(c, {SPK_SHAPE_MISMATCH, block.message}, got);

  const BadCut scope = bad_cut(c, "scope shape", s.model.grid);
  ScopeHandle no_scope;
  got = spk_scope_create(s.handle.get(), static_cast<int32_t>(scope.shape.size()),
                         scope.shape.data(), nullptr, no_scope.out());
  expect_refusal(c, {SPK_SHAPE_MISMATCH, scope.message}, got);
  if (no_block.get() != nullptr || no_scope.get() != nullptr) {
    mismatch("a refused call gave a handle");
  }
}

}  // namespace

Operations refusing_operations() {
  return {
      {"refuse_buffers", refuse_buffers},
      {"refuse_thresholds", refuse_thresholds},
      {"refuse_counts", refuse_counts},
      {"refuse_shapes", refuse_shapes},
  };
}

}  // namespace prop
