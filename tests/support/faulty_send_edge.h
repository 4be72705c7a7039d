#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "comm/transport.h"

namespace lockstep {

enum class Fault { kDrop, kRepeat, kDelay, kDie };

/// A sending end of any transport that does wrong to its published range number `at` (from 0).
class FaultySendEdge final : public SendEdge {
 public:
  FaultySendEdge(std::unique_ptr<SendEdge> edge, Fault fault, int at)
      : edge_(std::move(edge)), fault_(fault), at_(at) {}

  bool can_begin() override { return !edge_ || edge_->can_begin(); }
  void begin(const CollectiveHeader& header) override {
    if (edge_) {
      edge_->begin(header);
    }
  }
  void publish(Range range) override {
    const bool now = published_++ == at_;
    if (now && fault_ == Fault::kDelay) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (now && fault_ == Fault::kDie) {
      edge_.reset();
    }
    if (edge_ && !(now && fault_ == Fault::kDrop)) {
      edge_->publish(range);
    }
    if (edge_ && now && fault_ == Fault::kRepeat) {
      edge_->publish(range);
    }
  }
  bool flush() override { return !edge_ || edge_->flush(); }
  bool drained() override { return !edge_ || edge_->drained(); }
  Readiness readiness() const override { return edge_ ? edge_->readiness() : Readiness{}; }
  void sleep(std::chrono::microseconds limit) override {
    if (edge_) {
      edge_->sleep(limit);
    }
  }

 private:
  std::unique_ptr<SendEdge> edge_;
  Fault fault_;
  int at_;
  int published_ = 0;
};

}  // namespace lockstep
