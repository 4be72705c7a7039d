#pragma once

#include <string>

namespace lockstep {

/// Reads a GPU's SM clock through NVML, loaded when the program runs. It never sets one.
class SmClock {
 public:
  struct Reading {
    unsigned mhz = 0;     ///< 0 when it could not be read
    bool locked = false;  ///< held by an application's or an administrator's setting
  };

  /// Without NVML every reading is empty.
  explicit SmClock(const std::string& pci_id);
  ~SmClock();
  SmClock(const SmClock&) = delete;
  SmClock& operator=(const SmClock&) = delete;
  SmClock(SmClock&&) = delete;
  SmClock& operator=(SmClock&&) = delete;

  Reading read() const;
  /// The driver's version, or "unknown".
  std::string driver() const;

 private:
  template <class Function>
  Function symbol(const char* name) const;

  void* library_ = nullptr;
  void* device_ = nullptr;
};

}  // namespace lockstep
