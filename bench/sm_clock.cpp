#include "sm_clock.h"

#include <dlfcn.h>

#include <array>

namespace lockstep {
namespace {

// The values of nvml.h.
constexpr int kSuccess = 0;
constexpr int kClockSm = 1;
constexpr unsigned long long kApplicationsClocksSetting = 0x2;

}  // namespace

template <class Function>
Function SmClock::symbol(const char* name) const {
  return library_ == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library_, name));
}

SmClock::SmClock(const std::string& pci_id)
    : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
  const auto init = symbol<int (*)()>("nvmlInit_v2");
  const auto find = symbol<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
  if (init == nullptr || find == nullptr || init() != kSuccess ||
      find(pci_id.c_str(), &device_) != kSuccess) {
    device_ = nullptr;
  }
}

SmClock::~SmClock() {
  const auto shutdown = symbol<int (*)()>("nvmlShutdown");
  if (shutdown != nullptr) {
    shutdown();
  }
  if (library_ != nullptr) {
    ::dlclose(library_);
  }
}

SmClock::Reading SmClock::read() const {
  Reading reading;
  const auto clock = symbol<int (*)(void*, int, unsigned*)>("nvmlDeviceGetClockInfo");
  const auto reasons =
      symbol<int (*)(void*, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
  if (device_ == nullptr || clock == nullptr || reasons == nullptr) {
    return reading;
  }
  unsigned long long mask = 0;
  if (clock(device_, kClockSm, &reading.mhz) != kSuccess) {
    return {};
  }
  reading.locked = reasons(device_, &mask) == kSuccess && (mask & kApplicationsClocksSetting) != 0;
  return reading;
}

std::string SmClock::driver() const {
  std::array<char, 80> version{};
  const auto get = symbol<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
  if (get == nullptr || get(version.data(), version.size()) != kSuccess) {
    return "unknown";
  }
  return version.data();
}

}  // namespace lockstep
