// Which registers turn floats into doubles and back. Where they are of eight doubles (AVX-512),
// some processors are faster with two of four. Cycles of AMD's Zen 4 for eight, large registers and
// small ones: to doubles 1.32, 1.05; squared then 1.92, 1.10; or multiplied, rounded and stored
// 3.5, 2.6 (measured). There, kernels for floats that gain by it are those of AVX2, whose results
// are the same.
#pragma once

#include <hwy/targets.h>

#include <atomic>
#include <cstdint>

// Are there both? Not in builds for one instruction set.
#if (HWY_TARGETS & HWY_AVX2) && (HWY_TARGETS & HWY_AVX3)
#define SPK_HAS_SMALL_REGISTERS 1
#else
#define SPK_HAS_SMALL_REGISTERS 0
#endif

namespace spk {

enum class FloatRegisters : uint8_t { kUndecided, kLarge, kSmall };
extern std::atomic<FloatRegisters> float_registers;
// By the processor, unless it is decided.
void decide_float_registers();

// Is AVX-512 in use, and are small registers faster there?
bool takes_small_registers();

}  // namespace spk
