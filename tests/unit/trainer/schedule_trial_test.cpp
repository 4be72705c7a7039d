#include "trainer/schedule_trial.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>

namespace lockstep {
namespace {

using Seconds = BySchedule<double>;  // of a step

/// Runs ranks whose steps take as long as `ranks` says, each collected `ahead` steps behind; the
/// schedules of all steps. Ranks must agree on each.
std::vector<Schedule> run(std::vector<Seconds> ranks, int64_t steps, int64_t ahead,
                          std::vector<ScheduleTrial::Outcome>* outcomes = nullptr) {
  std::vector<ScheduleTrial> trials(ranks.size(), ScheduleTrial(true));
  std::vector<Schedule> schedules;
  std::deque<std::pair<int64_t, float>> pending;
  for (int64_t step = 0; step < steps; ++step) {
    float told = 0;
    for (const ScheduleTrial& trial : trials) {
      EXPECT_EQ(trial.schedule(step), trials[0].schedule(step)) << "step " << step;
      told += trial.behind_less_beside(step);
    }
    schedules.push_back(trials[0].schedule(step));
    pending.emplace_back(step, told);
    while (static_cast<int64_t>(pending.size()) > ahead) {
      const auto [index, sum] = pending.front();
      const double mean = sum / static_cast<double>(ranks.size());
      pending.pop_front();
      for (size_t rank = 0; rank < ranks.size(); ++rank) {
        trials[rank].add(index, ranks[rank][schedules[static_cast<size_t>(index)]]);
        const auto outcome = trials[rank].decide(index, mean);
        if (outcome && outcomes != nullptr) {
          outcomes->push_back(*outcome);
        }
      }
    }
  }
  return schedules;
}

TEST(ScheduleTrial, TakesTheFasterFromThenOn) {
  for (const int64_t ahead : {int64_t{0}, int64_t{1}}) {
    EXPECT_EQ(run({{1.0, 1.1}}, 200, ahead).back(), Schedule::kBeside);
    EXPECT_EQ(run({{1.1, 1.0}}, 200, ahead).back(), Schedule::kBehind);
  }
}

TEST(ScheduleTrial, TriesBothAndEndsSoon) {
  const std::vector<Schedule> schedules = run({{1.1, 1.0}}, 200, 1);
  EXPECT_EQ(std::set(schedules.begin(), schedules.begin() + 60),
            (std::set{Schedule::kBeside, Schedule::kBehind}));
  EXPECT_EQ(std::set(schedules.begin() + 100, schedules.end()), std::set{Schedule::kBehind});
}

TEST(ScheduleTrial, AllRanksDecideByTheMeanOfAll) {
  std::vector<ScheduleTrial::Outcome> outcomes;
  EXPECT_EQ(run({{1.0, 1.1}, {1.3, 1.0}}, 200, 1, &outcomes).back(), Schedule::kBehind);
  ASSERT_EQ(outcomes.size(), 2U);
  for (const ScheduleTrial::Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.chosen, Schedule::kBehind);
    EXPECT_NEAR(outcome.gain, 0.1, 1e-6);
  }
  EXPECT_EQ(run({{1.0, 1.3}, {1.1, 1.0}}, 200, 1).back(), Schedule::kBeside);
}

TEST(ScheduleTrial, SumsBesideWhenOff) {
  ScheduleTrial trial(false);
  for (int64_t step = 0; step < 200; ++step) {
    EXPECT_EQ(trial.schedule(step), Schedule::kBeside);
    EXPECT_EQ(trial.behind_less_beside(step), 0);
    trial.add(step, 1.0);
    EXPECT_FALSE(trial.decide(step, -1.0));
  }
}

}  // namespace
}  // namespace lockstep
