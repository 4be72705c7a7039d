#include "graph_timer.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "core/device/cuda_error.h"
#include "timing.h"

namespace lockstep {
namespace {

constexpr double kSampleSeconds = 2e-3;
constexpr int kMaxCalls = 200;
constexpr int kMinRounds = 5;

// Several calls of a body, captured once.
class CallGraph {
 public:
  CallGraph(CudaStream& stream, const std::function<void()>& body, int calls) : calls_(calls) {
    cudaGraph_t graph = nullptr;
    check_cuda(cudaStreamBeginCapture(stream.handle(), cudaStreamCaptureModeThreadLocal),
               "capturing a graph");
    for (int i = 0; i < calls; ++i) {
      body();
    }
    check_cuda(cudaStreamEndCapture(stream.handle(), &graph), "capturing a graph");
    const cudaError_t made = cudaGraphInstantiate(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check_cuda(made, "making a graph executable");
  }
  ~CallGraph() {
    if (executable_ != nullptr) {
      cudaGraphExecDestroy(executable_);
    }
  }
  CallGraph(CallGraph&& other) noexcept
      : executable_(std::exchange(other.executable_, nullptr)), calls_(other.calls_) {}
  CallGraph(const CallGraph&) = delete;
  CallGraph& operator=(const CallGraph&) = delete;
  CallGraph& operator=(CallGraph&&) = delete;

  // Seconds a call.
  double replay(CudaStream& stream) const {
    CudaEvent start;
    CudaEvent stop;
    start.record(stream);
    check_cuda(cudaGraphLaunch(executable_, stream.handle()), "replaying a graph");
    stop.record(stream);
    return stop.seconds_since(start) / calls_;
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
  int calls_;
};

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
    graphs.emplace_back(stream_, body,
                        std::clamp(static_cast<int>(kSampleSeconds / once), 1, kMaxCalls));
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
