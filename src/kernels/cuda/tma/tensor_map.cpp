#include "kernels/cuda/tma/tensor_map.cuh"

#include <cuda_runtime_api.h>

#include <array>

#include "core/base/error.h"
#include "core/device/cuda_error.h"

namespace lockstep::cuda {
namespace {

// The driver's function, found at run time: nothing links the driver.
decltype(&cuTensorMapEncodeTiled) encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  check_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                              cudaEnableDefault, &result),
             "looking for the driver's tensor maps");
  if (result != cudaDriverEntryPointSuccess) {
    throw UnsupportedError(
        "the NVIDIA driver is too old: it has no tensor maps; install a newer one");
  }
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

}  // namespace

CUtensorMap tensor_map(const MappedMatrix& matrix, int box_rows, TensorElements elements) {
  static const auto encode = encoder();
  const CUtensorMapDataType type = elements == TensorElements::kRoundedToTf32
                                       ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                                       : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const std::array sizes = {static_cast<cuuint64_t>(matrix.columns),
                            static_cast<cuuint64_t>(matrix.rows)};
  const cuuint64_t pitch_bytes = static_cast<cuuint64_t>(matrix.pitch) * sizeof(float);
  const std::array box = {cuuint32_t{32}, static_cast<cuuint32_t>(box_rows)};
  const std::array element_steps = {cuuint32_t{1}, cuuint32_t{1}};
  CUtensorMap map;
  const CUresult result = encode(
      &map, type, box.size(), const_cast<float*>(matrix.data), sizes.data(), &pitch_bytes,
      box.data(), element_steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  LOCKSTEP_CHECK(result == CUDA_SUCCESS, "code {} for a matrix of {} x {}, pitch {}, at {}",
                 static_cast<int>(result), matrix.rows, matrix.columns, matrix.pitch,
                 static_cast<const void*>(matrix.data));
  return map;
}

}  // namespace lockstep::cuda
