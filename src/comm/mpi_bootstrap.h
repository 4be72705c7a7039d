#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap.h"

namespace lockstep {

/// Bootstrap over MPI: rank and world size from mpirun (or 0 of 1 without it). One per process;
/// owns MPI from MPI_Init_thread to MPI_Finalize.
class MpiBootstrap final : public Bootstrap {
 public:
  MpiBootstrap(int* argc, char*** argv);
  ~MpiBootstrap() override;
  MpiBootstrap(const MpiBootstrap&) = delete;
  MpiBootstrap& operator=(const MpiBootstrap&) = delete;

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  std::vector<std::string> all_gather(std::string_view bytes) override;
  void barrier() override;
  bool barrier_unless(const std::function<bool()>& over) override;

  /// Runs what the ranks do together and returns what it returns. Once that has thrown, other ranks
  /// may be gone: MPI_Finalize, which would wait for them, is then left out.
  template <class Body>
  auto run(const Body& body) {
    try {
      return body();
    } catch (...) {
      abandoned_ = true;
      throw;
    }
  }

 private:
  int rank_ = 0;
  int world_size_ = 1;
  bool abandoned_ = false;
};

}  // namespace lockstep
