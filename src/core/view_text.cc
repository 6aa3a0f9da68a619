// The text form of a view: "(2560,608,8,2):(9728,16,1,8)+32".
#include <charconv>

#include "base/error.h"
#include "core/view.h"

namespace spk {
namespace {

class Parser {
 public:
  explicit Parser(const std::string &text) : text_(text) {}

  Extents tuple(const char *what) {
    Extents values;
    expect('(', what);
    do {
      if (values.size() == SPK_MAX_NDIM) {
        fail(SPK_INVALID_ARGUMENT, "view text: '", shortened(text_, 120), "': more than ",
             SPK_MAX_NDIM, " dims in the ", what);
      }
      values.push_back(number(what));
    } while (accept(','));
    expect(')', what);
    return values;
  }

  int64_t number(const char *what) {
    skip_blanks();
    int64_t value = 0;
    const char *first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) {
      fail(SPK_INVALID_ARGUMENT, "view text: '", shortened(text_, 120), "': a number of the ", what,
           " does not fit 64 bits, at position ", at_);
    }
    if (error != std::errc{}) refuse("a number", what);
    at_ += static_cast<size_t>(end - first);
    return value;
  }

  bool accept(char mark) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != mark) return false;
    ++at_;
    return true;
  }

  void expect(char mark, const char *what) {
    const char quoted[] = {'\'', mark, '\'', 0};
    if (!accept(mark)) refuse(quoted, what);
  }

  void expect_end() {
    skip_blanks();
    if (at_ != text_.size()) refuse("the end", "text");
  }

 private:
  [[noreturn]] void refuse(const char *expected, const char *what) {
    const std::string found = at_ < text_.size() ? cat("'", text_.substr(at_, 1), "'") : "the end";
    fail(SPK_INVALID_ARGUMENT, "view text: '", shortened(text_, 120), "': got ", found,
         " at position ", at_, ", expected ", expected, " of the ", what);
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  const std::string &text_;
  size_t at_ = 0;
};

}  // namespace

Ref<View> parse_view(int32_t dtype, const std::string &text) {
  Parser parser(text);
  const Extents shape = parser.tuple("shape");
  const bool has_stride = parser.accept(':');
  Extents stride = has_stride ? parser.tuple("stride") : Extents();
  const int64_t offset = parser.accept('+') ? parser.number("offset") : 0;
  parser.expect_end();
  return has_stride ? make_view(dtype, shape, stride, offset)
                    : make_contiguous_view(dtype, shape, offset);
}

std::string format_view(const View &view) {
  std::string text = cat(view.shape, ":", view.stride);
  if (view.offset != 0) text += cat("+", view.offset);
  return text;
}

}  // namespace spk
