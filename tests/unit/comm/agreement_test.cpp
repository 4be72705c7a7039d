#include "comm/agreement.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "core/base/error.h"
#include "support/thread_bootstrap.h"

namespace lockstep {
namespace {

using Facts = std::map<std::string, std::string>;

/// What every rank is told when rank r brings `facts[r]`; all must be told the same.
std::string verdict(const std::vector<Facts>& facts) {
  std::mutex mutex;
  std::vector<std::string> told;
  run_ranks(static_cast<int>(facts.size()), [&](Bootstrap& bootstrap) {
    std::string message = "agreed";
    try {
      check_agreement(bootstrap, facts[static_cast<size_t>(bootstrap.rank())]);
    } catch (const RanksDisagreeError& error) {
      message = error.what();
    }
    const std::lock_guard lock(mutex);
    told.push_back(message);
  });
  EXPECT_EQ(std::set(told.begin(), told.end()).size(), 1U);
  EXPECT_EQ(told.size(), facts.size());
  return told[0];
}

TEST(Agreement, EqualFactsPass) {
  const Facts facts = {{"seed", "1337"}, {"build", "abc"}, {"bytes", std::string("\xff\0\n", 3)}};
  EXPECT_EQ(verdict({facts}), "agreed");
  EXPECT_EQ(verdict({facts, facts, facts}), "agreed");
  EXPECT_EQ(verdict({{}, {}}), "agreed");
}

TEST(Agreement, NamesTheFirstKeyTheValuesAndTheRanks) {
  const std::string message = verdict({{{"a", "same"}, {"lr", "0.1"}, {"seed", "1"}},
                                       {{"a", "same"}, {"lr", "0.2"}, {"seed", "2"}},
                                       {{"a", "same"}, {"lr", "0.1"}, {"seed", "1"}},
                                       {{"a", "same"}, {"lr", "0.2"}, {"seed", "1"}}});
  EXPECT_EQ(message.rfind("the ranks disagree on lr: ranks 0, 2 have '0.1'; ranks 1, 3 have "
                          "'0.2'; start all of them",
                          0),
            0U)
      << message;
}

TEST(Agreement, AMissingFactIsADifference) {
  EXPECT_NE(
      verdict({{}, {{"dataset", "f00d"}}}).find("dataset: rank 0 has no value; rank 1 has 'f00d'"),
      std::string::npos);
  EXPECT_NE(
      verdict({{{"dataset", "f00d"}}, {}}).find("dataset: rank 0 has 'f00d'; rank 1 has no value"),
      std::string::npos);
  EXPECT_NE(verdict({{{"dataset", ""}}, {}}), "agreed");
}

TEST(Agreement, LongValuesAreCut) {
  EXPECT_LT(verdict({{{"config", std::string(100000, 'a')}}, {{"config", "b"}}}).size(), 400U);
}

}  // namespace
}  // namespace lockstep
