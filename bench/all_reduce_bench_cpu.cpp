// all_reduce_bench --device cpu: the ring, with MPI_Allreduce beside it.

#include <mpi.h>

#include <cstring>

#include "all_reduce_bench.h"
#include "all_reduce_input.h"
#include "core/base/clock.h"

namespace lockstep {
namespace {

class CpuAllReduceBench final : public AllReduceBench {
 public:
  CpuAllReduceBench(MpiBootstrap& bootstrap, const PeerTable& peers, ControlPlane& control,
                    const AllReduceOptions& options)
      : bootstrap_(bootstrap),
        options_(options),
        communicator_(bootstrap, peers, control, options.communicator()),
        ordinary_(elements_of(options.table.max_bytes)) {}

  std::string device() const override { return "CPU"; }
  std::string transport() const override { return communicator_.transport_name(); }
  std::string baseline() const override { return "MPI_Allreduce"; }
  double link_bandwidth() const override { return 0; }

  AllReduceResult run(int64_t bytes) override {
    const int64_t elements = elements_of(bytes);
    const CpuView<float> window = communicator_.window().subview({0, elements});
    const CpuView<float> ordinary = ordinary_.view().subview({0, elements});
    const auto sum_window = [&] {
      communicator_.all_reduce(stream_, {0, elements}, 0);
      communicator_.finish(stream_);
    };
    AllReduceSeries out_of_place;
    AllReduceSeries in_place;
    AllReduceSeries baseline;
    const TableOptions& table = options_.table;
    for (int64_t i = -table.warmup_iterations; i < table.iterations; ++i) {
      iterate(i, out_of_place, ordinary, window, [&] {
        std::memcpy(window.data(), ordinary.data(), static_cast<size_t>(elements) * sizeof(float));
        sum_window();
      });
      iterate(i, in_place, window, window, sum_window);
      if (options_.baseline == Baseline::kMpi) {
        iterate(i, baseline, ordinary, ordinary, [&] {
          MPI_Allreduce(MPI_IN_PLACE, ordinary.data(), static_cast<int>(elements), MPI_FLOAT,
                        MPI_SUM, MPI_COMM_WORLD);
        });
      }
    }
    return {elements * static_cast<int64_t>(sizeof(float)),
            {},
            gather_series(bootstrap_, out_of_place),
            gather_series(bootstrap_, in_place),
            options_.baseline == Baseline::kMpi ? gather_series(bootstrap_, baseline) : Timing{}};
  }

 private:
  template <class Operation>
  void iterate(int64_t iteration, AllReduceSeries& series, CpuView<float> input,
               CpuView<float> output, Operation operation) {
    ++round_;
    for (int64_t i = 0; i < input.size(); ++i) {
      input[i] = all_reduce_input(static_cast<uint32_t>(i), bootstrap_.rank(), round_);
    }
    bootstrap_.barrier();
    const Clock::time_point start = Clock::now();
    operation();
    const double seconds = seconds_since(start);
    if (iteration >= 0) {
      series.times_us.push_back(seconds * 1e6);
    }
    if (options_.table.check && iteration + 1 == options_.table.iterations) {
      for (int64_t i = 0; i < output.size(); ++i) {
        float expected = 0;
        for (int rank = 0; rank < bootstrap_.world_size(); ++rank) {
          expected += all_reduce_input(static_cast<uint32_t>(i), rank, round_);
        }
        series.wrong += output[i] == expected ? 0 : 1;
      }
    }
  }

  MpiBootstrap& bootstrap_;
  const AllReduceOptions& options_;
  Communicator<CpuDevice> communicator_;
  CpuBuffer<float> ordinary_;
  CpuStream stream_;
  uint32_t round_ = 0;
};

}  // namespace

std::unique_ptr<AllReduceBench> make_cpu_all_reduce_bench(MpiBootstrap& bootstrap,
                                                          const PeerTable& peers,
                                                          ControlPlane& control,
                                                          const AllReduceOptions& options) {
  return std::make_unique<CpuAllReduceBench>(bootstrap, peers, control, options);
}

}  // namespace lockstep
