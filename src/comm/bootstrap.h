#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// How ranks find each other before they have connections of their own. Used at start and at the
/// very end only; never for gradients.
class Bootstrap {
 public:
  Bootstrap() = default;
  virtual ~Bootstrap() = default;
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;
  Bootstrap(Bootstrap&&) = delete;
  Bootstrap& operator=(Bootstrap&&) = delete;

  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// Every rank's bytes, by rank; the lengths may differ. Collective.
  virtual std::vector<std::string> all_gather(std::string_view bytes) = 0;
  /// Collective.
  virtual void barrier() = 0;
  /// As barrier, for the end of a run in which ranks may be gone: is left, with false, as soon as
  /// `over` says so, which it asks about every millisecond. This one, for ranks that never go, asks
  /// once.
  virtual bool barrier_unless(const std::function<bool()>& over) {
    if (over()) {
      return false;
    }
    barrier();
    return true;
  }
};

}  // namespace lockstep
