// Where registers are of eight doubles (AVX-512), some processors turn floats into doubles and back
// faster in two halves. Of AMD's Zen 4, cycles for eight: to doubles 1.32, as halves 1.05; to doubles
// and squared 1.92, as halves 1.10; to doubles, multiplied, rounded and stored 3.5, as halves 2.6
// (measured). There, files of kernels take those of floats that gain by it from AVX2, whose results
// are the same.
#pragma once

#include <hwy/targets.h>

#include <atomic>
#include <cstdint>

// Are there kernels to choose from? Not in builds for one instruction set.
#if (HWY_TARGETS & HWY_AVX2) && (HWY_TARGETS & HWY_AVX3)
#define SPK_HAS_HALVES 1
#else
#define SPK_HAS_HALVES 0
#endif

namespace spk {

enum class Conversions : uint8_t { kUndecided, kWhole, kInHalves };
extern std::atomic<Conversions> conversions;
// By the processor, unless it is decided.
void decide_conversions();

// Is AVX-512 the instruction set in use, of a processor that converts in halves?
bool converts_in_halves();

}  // namespace spk
