// Answers worked out by hand, so that the oracle itself is not taken on trust.
#ifndef SPARSEKIT_TESTS_PROPERTY_SELF_CHECK_HPP_
#define SPARSEKIT_TESTS_PROPERTY_SELF_CHECK_HPP_

#include <string>

namespace prop {

// Empty, or what the oracle got wrong.
std::string check_oracle();

}  // namespace prop

#endif  // SPARSEKIT_TESTS_PROPERTY_SELF_CHECK_HPP_
