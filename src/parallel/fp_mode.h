// The floating-point environment of the work: round to nearest, denormals on, no traps, whatever
// the host has set; the host's is put back on the way out.
#pragma once

#include <cfenv>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

namespace spk {

#if defined(__x86_64__) || defined(__i386__)

class FpMode {
 public:
  FpMode() : host_(_mm_getcsr()) { _mm_setcsr(kWork); }
  ~FpMode() { _mm_setcsr(host_); }
  FpMode(const FpMode &) = delete;
  FpMode &operator=(const FpMode &) = delete;

  // The host's mode again, for the length of a callback.
  void suspend() const { _mm_setcsr(host_); }
  void resume() const { _mm_setcsr(kWork); }

 private:
  static constexpr unsigned kWork = 0x1f80;  // all exceptions masked, nearest, no FTZ, no DAZ
  unsigned host_;
};

#else

class FpMode {
 public:
  FpMode() {
    std::fegetenv(&host_);
    resume();
  }
  ~FpMode() { suspend(); }
  FpMode(const FpMode &) = delete;
  FpMode &operator=(const FpMode &) = delete;

  void suspend() const { std::fesetenv(&host_); }
  void resume() const { std::fesetenv(FE_DFL_ENV); }

 private:
  std::fenv_t host_;
};

#endif

}  // namespace spk
