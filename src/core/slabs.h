// Grids whose blocks are cut into parts, written across many, or read one leaf after the other keep
// something of each block until all of it is known. Where that would be much beside the data, slabs
// of blocks are taken one after the other. Results do not depend on them.
#pragma once

#include "core/call.h"
#include "core/grid.h"

namespace spk {

// Boxes that cover a grid; `kept` bytes are kept for each block of one. They are cut as the first
// leaf lies, but with long rows of the others where there is memory for them.
Tiling slabs_of(const Grid &grid, int64_t kept, int64_t threads);
// Do they hold rows of each leaf that are long enough to be read alone?
bool slabs_have_long_rows(const Grid &grid, int64_t kept, int64_t threads);
// What norms and thresholds of such a grid keep of each block.
int64_t kept_by_norms(const Grid &grid);

// The blocks of a box as a grid of their own, which has no tiles; and their entries of an array.
Grid blocks_in(const Rect &box, const Grid &grid, Memory *memory);
GridArray entries_in(const Rect &box, const GridArray &array);

// Calls each(blocks, box) for all slabs, and gives back what that takes of the call's scratch.
template <typename Fn>
void for_each_slab(Call &call, const Grid &grid, int64_t kept, Fn &&each) {
  const Tiling slabs = slabs_of(grid, kept, call.threads());
  const Scratch::Frame of_call(call.scratch());
  if (slabs.count() == 1) return each(grid, slabs[0]);
  for (int64_t i = 0; i < slabs.count(); ++i) {
    const Scratch::Frame frame(call.scratch());
    const Rect slab = slabs[i];
    each(blocks_in(slab, grid, call.memory()), slab);
  }
}

}  // namespace spk
