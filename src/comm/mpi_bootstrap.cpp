#include "comm/mpi_bootstrap.h"

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>

#include "core/base/error.h"

namespace lockstep {
namespace {

void check_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    throw PeerLostError("{} failed: {}; what another rank or mpirun printed says why", call,
                        text.data());
  }
}

}  // namespace

MpiBootstrap::MpiBootstrap(int* argc, char*** argv) {
  int provided = 0;
  check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &world_size_);
}

MpiBootstrap::~MpiBootstrap() {
  if (!abandoned_) {
    MPI_Finalize();
  }
}

std::vector<std::string> MpiBootstrap::all_gather(std::string_view bytes) {
  LOCKSTEP_CHECK(bytes.size() <= std::numeric_limits<int>::max(), "{} bytes", bytes.size());
  const auto ranks = static_cast<size_t>(world_size_);
  const int length = static_cast<int>(bytes.size());
  std::vector<int> lengths(ranks);
  check_mpi(MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, MPI_COMM_WORLD),
            "MPI_Allgather");

  std::vector<int> offsets(ranks);
  int64_t total = 0;
  for (size_t rank = 0; rank < ranks; ++rank) {
    offsets[rank] = static_cast<int>(total);
    total += lengths[rank];
    LOCKSTEP_CHECK(total <= std::numeric_limits<int>::max(), "{} bytes from {} ranks", total,
                   ranks);
  }
  std::string all(static_cast<size_t>(total), '\0');
  check_mpi(MPI_Allgatherv(bytes.data(), length, MPI_CHAR, all.data(), lengths.data(),
                           offsets.data(), MPI_CHAR, MPI_COMM_WORLD),
            "MPI_Allgatherv");

  std::vector<std::string> parts;
  parts.reserve(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    parts.push_back(
        all.substr(static_cast<size_t>(offsets[rank]), static_cast<size_t>(lengths[rank])));
  }
  return parts;
}

void MpiBootstrap::barrier() {
  check_mpi(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier");
}

bool MpiBootstrap::barrier_unless(const std::function<bool()>& over) {
  if (over()) {
    return false;
  }
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
  while (true) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) {
      return true;
    }
    if (over()) {
      abandoned_ = true;  // the request stays behind
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace lockstep
