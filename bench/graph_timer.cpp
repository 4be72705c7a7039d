#include "graph_timer.h"

#include <algorithm>

#include "timing.h"

namespace lockstep {
namespace {

constexpr double kSampleSeconds = 2e-3;
constexpr int kMaxCalls = 200;
constexpr int kMinRounds = 5;

// Several calls of a body, captured once.
struct CallGraph {
  CudaGraph graph;
  int calls;

  // Seconds a call.
  double replay(CudaStream& stream) {
    CudaEvent start;
    CudaEvent stop;
    start.record(stream);
    graph.launch(stream);
    stop.record(stream);
    return stop.seconds_since(start) / calls;
  }
};

CallGraph capture(CudaStream& stream, const std::function<void()>& body, int calls) {
  const auto all = [&] {
    for (int i = 0; i < calls; ++i) {
      body();
    }
  };
  return {CudaGraph(stream, all), calls};
}

void note(GraphTimer::Figures& figures, const SmClock::Reading& reading) {
  figures.pinned = figures.pinned && reading.locked &&
                   (figures.highest_mhz == 0 || figures.highest_mhz == reading.mhz);
  figures.lowest_mhz =
      figures.highest_mhz == 0 ? reading.mhz : std::min(figures.lowest_mhz, reading.mhz);
  figures.highest_mhz = std::max(figures.highest_mhz, reading.mhz);
}

}  // namespace

double GraphTimer::Figures::seconds() const {
  return median(samples);
}

std::vector<GraphTimer::Figures> GraphTimer::run(const std::vector<std::function<void()>>& bodies) {
  std::vector<CallGraph> graphs;
  for (const auto& body : bodies) {
    body();  // loads modules and sizes workspaces
    stream_.synchronize();
    CudaEvent start;
    CudaEvent stop;
    start.record(stream_);
    body();
    stop.record(stream_);
    const double once = std::max(stop.seconds_since(start), 1e-6);
    graphs.push_back(
        capture(stream_, body, std::clamp(static_cast<int>(kSampleSeconds / once), 1, kMaxCalls)));
  }
  std::vector<Figures> figures(bodies.size());
  const auto start = Clock::now();
  for (int round = 0; round < kMinRounds || seconds_since(start) < seconds_; ++round) {
    for (size_t i = 0; i < bodies.size(); ++i) {
      const SmClock::Reading before = clock_.read();
      figures[i].samples.push_back(graphs[i].replay(stream_));
      note(figures[i], before);
      note(figures[i], clock_.read());
    }
  }
  return figures;
}

double median_ratio(const GraphTimer::Figures& first, const GraphTimer::Figures& second) {
  std::vector<double> ratios;
  for (size_t i = 0; i < first.samples.size(); ++i) {
    ratios.push_back(first.samples[i] / second.samples[i]);
  }
  return median(ratios);
}

}  // namespace lockstep
