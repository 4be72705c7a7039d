// all_reduce_bench --device cuda: sums of windows in GPU memory, with NCCL beside them.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

#include "all_reduce_bench.h"
#include "all_reduce_values.h"
#include "comm/cuda/collective_watch.h"
#include "comm/cuda/communicator.h"
#include "comm/cuda/nccl.h"
#include "comm/cuda/peer_all_reduce.h"
#include "comm/cuda/peer_memory.h"
#include "comm/cuda/peer_probe.h"
#include "comm/cuda/rank_gpu.h"
#include "comm/gpu_transport_select.h"
#include "core/base/clock.h"
#include "core/base/error.h"

namespace lockstep {
namespace {

/// Whether sums go over peer access: by force, or where the trainer would take it too. Collective.
bool sums_over_peers(Bootstrap& bootstrap, const PeerTable& peers,
                     const AllReduceOptions& options) {
  if (bootstrap.world_size() == 1 || !may_use_peers(options.transport)) {
    return false;
  }
  return options.algorithm != "auto" ||
         (bootstrap.world_size() <= kMostPeerRanks && probe_peers(bootstrap, peers).usable);
}

/// The window, and how its sums are enqueued: over peer access by a plan of the bench's own, by any
/// other transport as the trainer does.
class Sums {
 public:
  Sums(Bootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
       const AllReduceOptions& options)
      : bootstrap_(bootstrap),
        control_(control),
        load_(options.beside ? SumLoad::kBeside : SumLoad::kAlone),
        algorithm_(peer_algorithm(options.algorithm)) {
    if (algorithm_ == PeerAlgorithm::kCopies && bootstrap.world_size() != 2) {
      throw UsageError("--algorithm copies is for two ranks");
    }
    const CommunicatorOptions of_communicator = options.communicator();
    if (!sums_over_peers(bootstrap, peers, options)) {
      communicator_.emplace(bootstrap, peers, control, of_communicator);
      return;
    }
    watch_.emplace(control, peers, of_communicator.collective_timeout);
    peer_.emplace(bootstrap, peers, of_communicator.window_elements, watch_->limit(),
                  algorithm_ == PeerAlgorithm::kCopies);
  }
  Sums(const Sums&) = delete;
  Sums& operator=(const Sums&) = delete;
  Sums(Sums&&) = delete;
  Sums& operator=(Sums&&) = delete;
  ~Sums() {
    if (peer_) {
      watch_->stop();
      const bool failed = std::uncaught_exceptions() > 0;
      peer_->leave(bootstrap_, [&] { return failed || control_.aborted(); });
    }
  }

  CudaView<float> window() { return peer_ ? peer_->window() : communicator_->window(); }
  std::string transport() const { return peer_ ? "peer" : communicator_->transport_name(); }

  /// How a range of `bytes` is summed over peer access; else empty.
  std::string plan(int64_t bytes) const {
    if (!peer_) {
      return {};
    }
    const PeerPlan plan = plan_of(bytes);
    if (plan.algorithm == PeerAlgorithm::kCopies) {
      return peer_algorithm_word(plan.algorithm);
    }
    return fmt::format("{}, {} block{}", peer_algorithm_word(plan.algorithm), plan.blocks,
                       plan.blocks == 1 ? "" : "s");
  }

  void enqueue(CudaStream& stream, Range range) {
    if (peer_) {
      peer_->force(plan_of(range.size() * static_cast<int64_t>(sizeof(float))));
      peer_->all_reduce(stream, range, 0, load_);
    } else {
      communicator_->all_reduce(stream, range, 0, load_);
      communicator_->finish(stream);
    }
  }
  void throw_if_failed() {
    if (peer_) {
      watch_->throw_if_failed();
    } else {
      communicator_->take_times();
    }
  }

 private:
  PeerPlan plan_of(int64_t bytes) const {
    return plan_peer_all_reduce(bootstrap_.world_size(), bytes, load_, algorithm_);
  }

  Bootstrap& bootstrap_;
  ControlPlane& control_;
  SumLoad load_;
  std::optional<PeerAlgorithm> algorithm_;
  std::optional<Communicator<CudaDevice>> communicator_;
  std::optional<PeerAllReduce> peer_;
  std::optional<CollectiveWatch> watch_;  ///< ends first: it waits for the GPU
};

/// What copy engines alone reach from each GPU to the next one, all at once; 0 where they cannot.
double measure_link(Bootstrap& bootstrap, const PeerTable& peers, CudaStream& stream) {
  constexpr int64_t kBytes = 128 << 20;
  constexpr int kRounds = 5;
  std::optional<PeerMemory> memory;
  try {
    memory.emplace(bootstrap, peers, 2 * kBytes);
  } catch (const UnsupportedError&) {
    return 0;
  }
  const int rank = bootstrap.rank();
  const int next = (rank + 1) % bootstrap.world_size();
  CudaEvent start;
  CudaEvent end;
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round) {
    bootstrap.barrier();
    start.mark(stream);
    copy_bytes(stream, memory->of(next) + kBytes, memory->of(rank), kBytes);
    end.mark(stream);
    seconds.push_back(end.seconds_since(start));
  }
  memory->leave(bootstrap, [] { return false; });
  std::sort(seconds.begin(), seconds.end());
  return static_cast<double>(kBytes) / seconds[kRounds / 2] * 1e-9;
}

class CudaAllReduceBench final : public AllReduceBench {
 public:
  CudaAllReduceBench(MpiBootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
                     const AllReduceOptions& options)
      : bootstrap_(bootstrap),
        options_(options),
        link_bandwidth_(measure_link(bootstrap, peers, stream_)),
        sums_(bootstrap, peers, control, options),
        ordinary_(elements_of(options.table.max_bytes)),
        wrong_(1) {
    if (options.baseline == Baseline::kNccl) {
      nccl_.emplace(bootstrap, "use --baseline none");
    }
  }

  std::string device() const override { return stream_.facts().name; }
  std::string pci_id() const override { return stream_.facts().pci_id; }
  std::string transport() const override { return sums_.transport(); }
  std::string baseline() const override { return nccl_ ? "NCCL " + nccl_->version() : "none"; }
  double link_bandwidth() const override { return link_bandwidth_; }

  AllReduceResult run(int64_t bytes) override {
    const Range range{0, elements_of(bytes)};
    const CudaView<float> window = sums_.window().subview(range);
    const CudaView<float> ordinary = ordinary_.view().subview(range);
    std::vector<Kind> kinds;
    kinds.emplace_back(ordinary, window, [=, this] {
      copy(stream_, window, CudaView<const float>(ordinary));
      sums_.enqueue(stream_, range);
    });
    kinds.emplace_back(window, window, [=, this] { sums_.enqueue(stream_, range); });
    if (nccl_) {
      kinds.emplace_back(ordinary, ordinary, [=, this] { nccl_->all_reduce(stream_, ordinary); });
    }
    time(kinds);
    return {range.size() * static_cast<int64_t>(sizeof(float)), sums_.plan(bytes),
            gather_series(bootstrap_, kinds[0].series), gather_series(bootstrap_, kinds[1].series),
            nccl_ ? gather_series(bootstrap_, kinds[2].series) : Timing{}};
  }

 private:
  /// One kind of all-reduce: how it is enqueued, between which arrays, and its times.
  struct Kind {
    Kind(CudaView<float> from, CudaView<float> to, std::function<void()> sum)
        : input(from), output(to), enqueue(std::move(sum)) {}

    CudaView<float> input;
    CudaView<float> output;
    std::function<void()> enqueue;
    AllReduceSeries series;
    CudaGraph one;  ///< with -G: a single sum, to check
    CudaGraph all;  ///< and all that a launch runs
  };

  void time(std::vector<Kind>& kinds) {
    const TableOptions& table = options_.table;
    const bool graph = table.graph_launches > 0;
    for (Kind& kind : kinds) {
      refill(kind);
      kind.enqueue();
      if (graph) {
        stream_.synchronize();
        kind.one = CudaGraph(stream_, kind.enqueue);
        kind.all = CudaGraph(stream_, [&] {
          for (int64_t i = 0; i < table.iterations; ++i) {
            kind.enqueue();
          }
        });
      }
    }
    const int64_t samples = graph ? table.graph_launches : table.iterations;
    for (int64_t i = -table.warmup_iterations; i < samples; ++i) {
      for (Kind& kind : kinds) {
        refill(kind);
        const double us = graph ? time_graph(kind) : time_one(kind);
        if (i >= 0) {
          kind.series.times_us.push_back(us);
        }
      }
    }
    if (table.check) {
      for (Kind& kind : kinds) {
        check(kind);
      }
    }
    sums_.throw_if_failed();
  }

  /// Fills the input anew; no rank goes on before all have.
  void refill(const Kind& kind) {
    fill_all_reduce_input(stream_, kind.input, bootstrap_.rank(), ++round_);
    stream_.synchronize();
    bootstrap_.barrier();
  }

  // From the call until the host sees the end.
  double time_one(const Kind& kind) {
    const Clock::time_point start = Clock::now();
    kind.enqueue();
    stream_.synchronize();
    return seconds_since(start) * 1e6;
  }

  // Of one of the sums that a launch runs one after another, by the GPU's clock.
  double time_graph(Kind& kind) {
    start_.mark(stream_);
    kind.all.launch(stream_);
    end_.mark(stream_);
    return end_.seconds_since(start_) * 1e6 / static_cast<double>(options_.table.iterations);
  }

  void check(Kind& kind) {
    refill(kind);
    if (kind.one.empty()) {
      kind.enqueue();
    } else {
      kind.one.launch(stream_);
    }
    set_zero(stream_, wrong_.view());
    count_wrong_sums(stream_, wrong_.view(), CudaView<const float>(kind.output),
                     bootstrap_.world_size(), round_);
    uint64_t wrong = 0;
    copy_to_host(stream_, &wrong, CudaView<const uint64_t>(wrong_.view()));
    stream_.synchronize();
    kind.series.wrong = static_cast<int64_t>(wrong);
  }

  MpiBootstrap& bootstrap_;
  const AllReduceOptions& options_;
  CudaStream stream_;
  double link_bandwidth_;
  Sums sums_;
  CudaBuffer<float> ordinary_;
  CudaBuffer<uint64_t> wrong_;
  CudaEvent start_;
  CudaEvent end_;
  std::optional<Nccl> nccl_;
  uint32_t round_ = 0;
};

}  // namespace

std::unique_ptr<AllReduceBench> make_cuda_all_reduce_bench(MpiBootstrap& bootstrap,
                                                           const PeerTable& peers,
                                                           ControlPlane& control,
                                                           const AllReduceOptions& options) {
  use_rank_gpu(bootstrap, peers, true);
  if (options.baseline == Baseline::kNccl) {
    // NVLS adds in the switch: what is compared is what travels over the links.
    ::setenv("NCCL_NVLS_ENABLE", "0", 1);
  }
  return std::make_unique<CudaAllReduceBench>(bootstrap, peers, control, options);
}

}  // namespace lockstep
