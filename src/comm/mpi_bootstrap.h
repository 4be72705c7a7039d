#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/bootstrap.h"

namespace lockstep {

/// Bootstrap over MPI: rank and world size from mpirun (or 0 of 1 without it). One per process;
/// owns MPI from MPI_Init_thread to MPI_Finalize. When the process leaves by an error, call
/// `abandon` first: MPI_Finalize would wait for ranks that are gone.
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

  void abandon() noexcept { abandoned_ = true; }

 private:
  int rank_ = 0;
  int world_size_ = 1;
  bool abandoned_ = false;
};

}  // namespace lockstep
