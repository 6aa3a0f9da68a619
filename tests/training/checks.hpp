// One call of each kind, and what it has to have done.
#ifndef SPARSEKIT_TESTS_TRAINING_CHECKS_HPP_
#define SPARSEKIT_TESTS_TRAINING_CHECKS_HPP_

#include "world.hpp"

namespace training {

// How often the oracle could not say which of two roundings is right, and took the library's word
// for how many places a layer gets; which places they are it always knows.
struct Doubts {
  int64_t questions = 0;
  int64_t doubts = 0;
};

void check_initialise(World &world);
void check_update(World &world, Doubts &doubts);
void check_step(World &world);
void check_apply(World &world);
void check_removal(World &world);

// Sets `place` of a buffer, which may be NULL, to what masking leaves: +0 where the mask forbids.
void expect_masked(Buffer *buffer, const std::vector<bool> &mask);
void near(const std::string &what, double expected, double got);

// What an update has to do, layer by layer.
struct Expected {
  double rate = 0;
  std::vector<LayerData> before;  // of members only
  std::vector<int32_t> ids;
  std::vector<spk_layer_stats> stats;
  std::vector<int64_t> requested_removed;  // -1: not said
  std::vector<Places> removed;
  std::vector<std::vector<bool>> pruned;  // masks between pruning and growth
  std::vector<int64_t> requested_grown;   // -1: not said
  std::vector<std::vector<bool>> after;

  size_t size() const { return ids.size(); }
};

void expect_statistics(const World &world, const Expected &e);
void expect_rates(const World &world, const Expected &e);
void expect_pruned(World &world, Expected &e, Doubts &doubts);
void expect_requests(World &world, Expected &e, Doubts &doubts);
void expect_grown(World &world, Expected &e);

}  // namespace training

#endif  // SPARSEKIT_TESTS_TRAINING_CHECKS_HPP_
