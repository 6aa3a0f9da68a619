// One case: its random numbers, its memory, its calls, and how it reports a mismatch.
#ifndef SPARSEKIT_TESTS_PROPERTY_CASE_HPP_
#define SPARSEKIT_TESTS_PROPERTY_CASE_HPP_

#include <deque>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "buffer.hpp"
#include "handles.hpp"
#include "random.hpp"

namespace prop {

enum LayoutClass { kContiguous, kStrided, kPermuted, kNegative, kCoupled, kLayoutClasses };

// Thrown by whatever notices that the library and the oracle disagree.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The contexts that cases draw from: NULL, and each executor of this build with 1 to 4 threads.
class Contexts {
 public:
  Contexts();
  spk_context *draw(Random &random) const;
  int64_t handles() const { return static_cast<int64_t>(contexts_.size()); }

 private:
  std::vector<ContextHandle> contexts_;
};

class Case {
 public:
  // Only a `talking` case keeps notes: a case that fails is run again to hear them.
  Case(uint64_t seed, int dtype, LayoutClass layout_class, bool large, bool talking,
       const Contexts &contexts);

  Random random;
  const int dtype;
  const LayoutClass layout_class;
  // Enough elements to cross the tiles into which the library may cut its work.
  const bool large;

  Memory &memory(size_t bytes);
  Buffer &add(Buffer buffer);
  // A contiguous array with room for guards on both sides.
  Buffer &array(const std::string &label, int dtype, int64_t count);

  // Adds a line to the description.
  template <class F>
  void note(F &&line) {
    if (talking_) notes_ += "    " + line() + "\n";
  }
  std::string description() const;

  // Arms the memory and calls the library with a random context; now and then repeats the call
  // on the same bytes with another context, which must give the same bytes.
  spk_status call(const std::function<spk_status(spk_context *)> &work);
  // The same for a call that has to succeed.
  void run(const std::function<spk_status(spk_context *)> &work);
  // Handles are made by calls that have to succeed too.
  void require(spk_status status, const std::string &what);
  // Every byte of every memory must be what it was when the call was made, or what was expected.
  void verify();

  // Handles that outlive their last use by chance, so that owners go in any order.
  template <class H>
  void maybe_keep(const H &handle) {
    if (random.one_in(3)) kept_.push_back(std::make_shared<H>(handle));
  }

 private:
  std::string where(const Memory &memory, size_t byte) const;

  const Contexts &contexts_;
  std::deque<Memory> memories_;
  std::deque<Buffer> buffers_;
  std::vector<std::shared_ptr<void>> kept_;
  const bool talking_;
  std::string notes_;
};

// Throws with the place and both values, each in all digits.
[[noreturn]] void mismatch(const std::string &what, int64_t index, double expected, double got);
[[noreturn]] void mismatch(const std::string &what);
// For exact facts such as shapes and counts.
void same(const std::string &what, int64_t expected, int64_t got);

// A report as a caller prepares it; the fields hold junk so that a forgotten one shows.
spk_report junk_report();

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_CASE_HPP_
