// A GPU that computes nothing, for PyTorch's build without CUDA: tensors that have shapes and no values (FakeTensor) can
// be on it. It must be loaded before PyTorch, which looks for CUDA only once.
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

using c10::Device, c10::DeviceIndex, c10::DeviceType, c10::Stream;

namespace {

const Device gpu(DeviceType::CUDA, 0);
const Stream only(Stream::DEFAULT, gpu);

// One device and one stream; choosing and waiting do nothing.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::CUDA; }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  Device getDevice() const override { return gpu; }
  Device exchangeDevice(Device) const override { return gpu; }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device) const override { return only; }
  Stream getDefaultStream(Device) const override { return only; }
  Stream exchangeStream(Stream) const override { return only; }
};
C10_REGISTER_GUARD_IMPL(CUDA, Guard);

}  // namespace

// What autograd asks before it starts a thread for the device.
struct CUDAHooks final : at::CUDAHooksInterface {
  explicit CUDAHooks(at::CUDAHooksArgs) {}
  void init() const override {}
  bool hasCUDA() const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
};
using at::CUDAHooksRegistry, at::RegistererCUDAHooksRegistry;
REGISTER_CUDA_HOOKS(CUDAHooks);
