#include "comm/cuda/peer_copies.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "comm/cuda/sum_digest.h"
#include "core/base/error.h"

namespace lockstep {
namespace {

/// Enough loads under way to fill the memory's bandwidth.
constexpr int kBlocksPerMultiprocessor = 2;

}  // namespace

std::unique_ptr<CopyWords> first_copy_words() {
  auto words = std::make_unique<CopyWords>();
  std::fill(std::begin(words->marks), std::end(words->marks), kFirstCount);
  std::fill(std::begin(words->arrived), std::end(words->arrived), kFirstCount);
  words->rounds = kFirstCount;
  words->freed = kFirstCount;
  return words;
}

PeerCopies::PeerCopies(Bootstrap& bootstrap, const PeerSum& everyone, int64_t window_elements,
                       CopyArea own, CopyArea theirs)
    : copy_{everyone, own.words, theirs.words, own.staging}, their_staging_(theirs.staging) {
  const std::unique_ptr<CopyWords> words = first_copy_words();
  CudaStream& stream = copies_.front();
  copy_bytes_from_host(stream, own.words, words.get(), sizeof(CopyWords));
  stream.synchronize();
  // The time of a sum by copies, without a kernel beside the copies to tell it.
  const int64_t elements = std::min(window_elements, kLeastPieceElements);
  ns_per_element_ = seconds_to_copy(bootstrap, elements) * 1e9 / static_cast<double>(elements);
}

/// While the peer copies as much. The barriers also see to it that both have set their words.
double PeerCopies::seconds_to_copy(Bootstrap& bootstrap, int64_t elements) {
  constexpr int kCopies = 3;  // the first may find the link asleep
  CudaStream& stream = copies_.front();
  CudaEvent start;
  CudaEvent end;
  double least = 0;
  for (int i = 0; i < kCopies; ++i) {
    bootstrap.barrier();
    start.record(stream);
    copy_bytes(stream, their_staging_, copy_.sum.windows[copy_.sum.rank],
               elements * static_cast<int64_t>(sizeof(float)));
    end.record(stream);
    const double seconds = end.seconds_since(start);
    least = i == 0 ? seconds : std::min(least, seconds);
  }
  return least;
}

void PeerCopies::push(CudaStream& stream, Range range, int bucket, SumLoad load) {
  LOCKSTEP_CHECK(has_room(), "{} pieces are in the round", slots_);
  // Beside backward there is time until all have come.
  const std::vector<Range> pieces =
      load == SumLoad::kAlone ? copy_pieces(range) : std::vector<Range>{range};
  const uint32_t digest = sum_digest(range, bucket);
  const int mark = slots_;
  copy_.sum.bucket = bucket;
  launch_copy_begin(stream.handle(), copy_, mark, digest, !under_way());
  begun_.record(stream);
  for (size_t i = 0; i < pieces.size(); ++i) {
    CudaStream& copies = copies_[i % copies_.size()];
    if (i < copies_.size()) {
      copies.wait(begun_);
    }
    Group& group = group_for(load);
    group.pieces.pieces[group.pieces.count++] = {pieces[i], digest, bucket};
    copy_piece(copies, pieces[i], mark);
    group.copied.record(copies);
  }
  elements_ += range.size();
}

/// Copies of one stream come one after another, as the peer probe has proven: the mark is there
/// after the data.
void PeerCopies::copy_piece(CudaStream& copies, Range piece, int mark) {
  copy_bytes(copies, their_staging_ + piece.begin, copy_.sum.windows[copy_.sum.rank] + piece.begin,
             piece.size() * static_cast<int64_t>(sizeof(float)));
  copy_bytes(copies, &copy_.theirs->arrived[slots_], &copy_.own->marks[mark], sizeof(uint64_t));
  ++slots_;
}

/// Behind backward each piece is added as soon as it has come.
PeerCopies::Group& PeerCopies::group_for(SumLoad load) {
  if (used_ > 0 && load == SumLoad::kBeside && groups_[used_ - 1].grows &&
      groups_[used_ - 1].pieces.count < kMostAddedPieces) {
    return groups_[used_ - 1];
  }
  if (used_ == groups_.size()) {
    groups_.emplace_back();
  }
  Group& group = groups_[used_++];
  group.grows = load == SumLoad::kBeside;
  group.pieces.first_slot = slots_;
  group.pieces.count = 0;
  return group;
}

void PeerCopies::finish(CudaStream& stream) {
  if (!under_way()) {
    return;
  }
  const int most_blocks = kBlocksPerMultiprocessor * stream.facts().multiprocessors;
  for (size_t i = 0; i < used_; ++i) {
    stream.wait(groups_[i].copied);
    launch_copy_add(stream.handle(), copy_, groups_[i].pieces, most_blocks);
  }
  const double busy_ns = static_cast<double>(std::exchange(elements_, 0)) * ns_per_element_;
  launch_copy_end(stream.handle(), copy_, static_cast<uint64_t>(busy_ns));
  used_ = 0;
  slots_ = 0;
}

}  // namespace lockstep
