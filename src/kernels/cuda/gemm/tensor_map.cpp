#include "kernels/cuda/gemm/tensor_map.cuh"

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

// strides: in bytes, of all dimensions but the first.
template <std::size_t kRank>
CUtensorMap encode(const MappedMatrix& matrix, CUtensorMapDataType type,
                   const std::array<cuuint64_t, kRank>& sizes,
                   const std::array<cuuint64_t, kRank - 1>& strides,
                   const std::array<cuuint32_t, kRank>& box, CUtensorMapSwizzle swizzle) {
  static const auto function = encoder();
  CUtensorMap map;
  std::array<cuuint32_t, kRank> element_steps{};
  element_steps.fill(1);
  const CUresult result =
      function(&map, type, kRank, const_cast<float*>(matrix.data), sizes.data(), strides.data(),
               box.data(), element_steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
               CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  LOCKSTEP_CHECK(result == CUDA_SUCCESS, "code {} for a matrix of {} x {}, pitch {}, at {}",
                 static_cast<int>(result), matrix.rows, matrix.columns, matrix.pitch,
                 static_cast<const void*>(matrix.data));
  return map;
}

cuuint64_t pitch_bytes(const MappedMatrix& matrix) {
  return static_cast<cuuint64_t>(matrix.pitch) * sizeof(float);
}

}  // namespace

CUtensorMap tensor_map(const MappedMatrix& matrix, int box_rows, TensorElements elements) {
  const CUtensorMapDataType type = elements == TensorElements::kRoundedToTf32
                                       ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                                       : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  return encode<2>(
      matrix, type, {static_cast<cuuint64_t>(matrix.columns), static_cast<cuuint64_t>(matrix.rows)},
      {pitch_bytes(matrix)}, {32, static_cast<cuuint32_t>(box_rows)}, CU_TENSOR_MAP_SWIZZLE_128B);
}

CUtensorMap column_group_map(const MappedMatrix& matrix, int box_columns) {
  return encode<3>(
      matrix, CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
      {8, static_cast<cuuint64_t>(matrix.rows), static_cast<cuuint64_t>(matrix.columns) / 8},
      {pitch_bytes(matrix), 8 * sizeof(float)}, {8, 32, static_cast<cuuint32_t>(box_columns) / 8},
      CU_TENSOR_MAP_SWIZZLE_NONE);
}

}  // namespace lockstep::cuda
