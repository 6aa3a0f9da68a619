// The floating-point environment of the work: round to nearest, denormals on, no traps, whatever
// the host has set; the host's is put back on the way out.
#pragma once

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace spk {

#if defined(__x86_64__) || defined(__i386__)

using FpState = unsigned;
inline FpState fp_state() {
  return _mm_getcsr();
}
inline void set_fp_state(FpState state) {
  _mm_setcsr(state);
}
// All exceptions masked, nearest, no FTZ, no DAZ.
inline void set_work_fp_state() {
  _mm_setcsr(0x1f80);
}

#else

using FpState = std::fenv_t;
inline FpState fp_state() {
  FpState state;
  std::fegetenv(&state);
  return state;
}
inline void set_fp_state(const FpState &state) {
  std::fesetenv(&state);
}
inline void set_work_fp_state() {
  std::fesetenv(FE_DFL_ENV);
}

#endif

// The mode of the work, for as long as this lives. They may nest.
class FpMode {
 public:
  FpMode() : before_(fp_state()), outer_(innermost_) {
    innermost_ = this;
    set_work_fp_state();
  }
  ~FpMode() {
    set_fp_state(before_);
    innermost_ = outer_;
  }
  FpMode(const FpMode &) = delete;
  FpMode &operator=(const FpMode &) = delete;

  // That of this thread, NULL outside any.
  static const FpMode *innermost() { return innermost_; }

  // The mode that was found, for the length of a callback.
  void suspend() const { set_fp_state(before_); }
  static void resume() { set_work_fp_state(); }

 private:
  FpState before_;
  const FpMode *outer_;
  static inline thread_local const FpMode *innermost_ = nullptr;
};

// The host's mode again, for the length of a call of one of its functions.
class HostMode {
 public:
  HostMode() : mode_(FpMode::innermost()) {
    if (mode_) mode_->suspend();
  }
  ~HostMode() {
    if (mode_) FpMode::resume();
  }
  HostMode(const HostMode &) = delete;
  HostMode &operator=(const HostMode &) = delete;

 private:
  const FpMode *mode_;
};

}  // namespace spk
