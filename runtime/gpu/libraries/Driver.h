// The CUDA driver, opened at run time: nothing links to it, and machines without it can run everything else.
#pragma once
#include "runtime/support/Status.h"
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace burin::rt::gpu {

// Types of the driver's ABI.
using Result = int;       // CUresult
using DeviceNumber = int; // CUdevice
using DevicePointer = uint64_t;
using Context = struct ContextOpaque *;
using Module = struct ModuleOpaque *;
using Function = struct FunctionOpaque *;
using Stream = struct StreamOpaque *;
using Event = struct EventOpaque *;
using Graph = struct GraphOpaque *;
using GraphExec = struct GraphExecOpaque *;
using GraphNode = struct GraphNodeOpaque *;
using Condition = uint64_t; // CUgraphConditionalHandle
using MemoryPool = struct MemoryPoolOpaque *;

inline constexpr Result kSuccess = 0, kOutOfMemory = 2;

/// CUlaunchAttribute: the kernel may begin before the one ahead of it in the stream has ended; its code waits for that
/// (griddepcontrol.wait).
struct LaunchAttribute {
  int id = 6; // CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
  int reserved0 = 0;
  int isAllowed = 1;
  int reserved1[15] = {};
};
static_assert(sizeof(LaunchAttribute) == 72);

/// CUlaunchConfig.
struct LaunchConfig {
  unsigned gridX = 1, gridY = 1, gridZ = 1, blockX = 1, blockY = 1, blockZ = 1, sharedBytes = 0;
  Stream stream = nullptr;
  const LaunchAttribute *attributes = nullptr;
  unsigned attributeCount = 0;
};
static_assert(sizeof(LaunchConfig) == 56);

// clang-format off
/// All functions in use: name here, symbol (which includes the ABI version), parameters.
#define BURIN_CUDA_FUNCTIONS(F)                                                                                        \
  F(init, "cuInit", (unsigned flags))                                                                                  \
  F(driverGetVersion, "cuDriverGetVersion", (int *version))                                                            \
  F(getErrorName, "cuGetErrorName", (Result, const char **name))                                                       \
  F(deviceGetCount, "cuDeviceGetCount", (int *count))                                                                  \
  F(deviceGet, "cuDeviceGet", (DeviceNumber *, int ordinal))                                                                 \
  F(deviceGetName, "cuDeviceGetName", (char *name, int bytes, DeviceNumber))                                                 \
  F(deviceTotalMem, "cuDeviceTotalMem_v2", (size_t *bytes, DeviceNumber))                                                    \
  F(deviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, DeviceNumber))                                   \
  F(primaryCtxRetain, "cuDevicePrimaryCtxRetain", (Context *, DeviceNumber))                                                 \
  F(primaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (DeviceNumber))                                                       \
  F(ctxPush, "cuCtxPushCurrent_v2", (Context))                                                                         \
  F(ctxPop, "cuCtxPopCurrent_v2", (Context *))                                                                         \
  F(moduleLoadData, "cuModuleLoadData", (Module *, const void *image))                                                 \
  F(moduleUnload, "cuModuleUnload", (Module))                                                                          \
  F(moduleGetFunction, "cuModuleGetFunction", (Function *, Module, const char *name))                                  \
  F(functionSetAttribute, "cuFuncSetAttribute", (Function, int attribute, int value))                                  \
  F(launchKernel, "cuLaunchKernel",                                                                                    \
    (Function, unsigned gridX, unsigned gridY, unsigned gridZ, unsigned blockX, unsigned blockY, unsigned blockZ,      \
     unsigned sharedBytes, Stream, void **arguments, void **extra))                                                    \
  F(streamCreate, "cuStreamCreate", (Stream *, unsigned flags))                                                        \
  F(streamDestroy, "cuStreamDestroy_v2", (Stream))                                                                     \
  F(streamSynchronize, "cuStreamSynchronize", (Stream))                                                                \
  F(streamWaitEvent, "cuStreamWaitEvent", (Stream, Event, unsigned flags))                                             \
  F(streamIsCapturing, "cuStreamIsCapturing", (Stream, int *status))                                                   \
  F(exchangeCaptureMode, "cuThreadExchangeStreamCaptureMode", (int *mode))                                             \
  F(streamBeginCapture, "cuStreamBeginCapture_v2", (Stream, int mode))                                                 \
  F(streamEndCapture, "cuStreamEndCapture", (Stream, Graph *))                                                         \
  F(graphInstantiate, "cuGraphInstantiateWithFlags", (GraphExec *, Graph, unsigned long long flags))                   \
  F(graphLaunch, "cuGraphLaunch", (GraphExec, Stream))                                                                 \
  F(graphDestroy, "cuGraphDestroy", (Graph))                                                                           \
  F(graphExecDestroy, "cuGraphExecDestroy", (GraphExec))                                                               \
  F(eventCreate, "cuEventCreate", (Event *, unsigned flags))                                                           \
  F(eventDestroy, "cuEventDestroy_v2", (Event))                                                                        \
  F(eventRecord, "cuEventRecord", (Event, Stream))                                                                     \
  F(eventSynchronize, "cuEventSynchronize", (Event))                                                                   \
  F(eventQuery, "cuEventQuery", (Event))                                                                               \
  F(deviceMemoryPool, "cuDeviceGetDefaultMemPool", (MemoryPool *, DeviceNumber))                                             \
  F(poolSetAttribute, "cuMemPoolSetAttribute", (MemoryPool, int attribute, void *value))                               \
  F(poolGetAttribute, "cuMemPoolGetAttribute", (MemoryPool, int attribute, void *value))                               \
  F(poolTrimTo, "cuMemPoolTrimTo", (MemoryPool, size_t bytes))                                                         \
  F(memHostAlloc, "cuMemHostAlloc", (void **, size_t bytes, unsigned flags))                                           \
  F(memFreeHost, "cuMemFreeHost", (void *))                                                                            \
  F(memAllocAsync, "cuMemAllocAsync", (DevicePointer *, size_t bytes, Stream))                                         \
  F(memFreeAsync, "cuMemFreeAsync", (DevicePointer, Stream))                                                           \
  F(copyToDevice, "cuMemcpyHtoDAsync_v2", (DevicePointer to, const void *from, size_t bytes, Stream))                  \
  F(copyToHost, "cuMemcpyDtoHAsync_v2", (void *to, DevicePointer from, size_t bytes, Stream))                          \
  F(copyWithin, "cuMemcpyDtoDAsync_v2", (DevicePointer to, DevicePointer from, size_t bytes, Stream))                  \
  F(copyPeer, "cuMemcpyPeerAsync",                                                                                     \
    (DevicePointer to, Context toContext, DevicePointer from, Context fromContext, size_t bytes, Stream))              \
  F(fill, "cuMemsetD8Async", (DevicePointer to, unsigned char value, size_t bytes, Stream))                            \
  F(fill16, "cuMemsetD16Async", (DevicePointer to, unsigned short value, size_t count, Stream))                        \
  F(fill32, "cuMemsetD32Async", (DevicePointer to, unsigned value, size_t count, Stream))
/// Functions that older drivers lack; null there.
#define BURIN_CUDA_OPTIONAL_FUNCTIONS(F)                                                                               \
  F(streamCaptureInfo, "cuStreamGetCaptureInfo_v3",                                                                    \
    (Stream, int *status, uint64_t *id, Graph *, const GraphNode **dependencies, const void **edges, size_t *count))   \
  F(streamSetDependencies, "cuStreamUpdateCaptureDependencies_v2",                                                     \
    (Stream, GraphNode *dependencies, const void *edges, size_t count, unsigned flags))                                \
  F(streamBeginCaptureTo, "cuStreamBeginCaptureToGraph",                                                               \
    (Stream, Graph, const GraphNode *dependencies, const void *edges, size_t count, int mode))                         \
  F(graphAddNode, "cuGraphAddNode_v2",                                                                                 \
    (GraphNode *, Graph, const GraphNode *dependencies, const void *edges, size_t count, NodeParameters *))            \
  F(conditionCreate, "cuGraphConditionalHandleCreate",                                                                 \
    (Condition *, Graph, Context, unsigned value, unsigned flags))                                                     \
  F(tensorMapEncode, "cuTensorMapEncodeTiled",                                                                         \
    (void *map, int type, uint32_t rank, DevicePointer, const uint64_t *sizes, const uint64_t *strides,                \
     const uint32_t *box, const uint32_t *steps, int interleaving, int swizzle, int promotion, int fill))               \
  F(launchKernelEx, "cuLaunchKernelEx", (const LaunchConfig *, Function, void **arguments, void **extra))
// clang-format on

/// CUgraphNodeParams of a conditional node.
struct NodeParameters {
  int type = 13; // CU_GRAPH_NODE_TYPE_CONDITIONAL
  int reserved0[3] = {};
  Condition condition = 0;
  int kind = 0;            // 0: the body runs once if the condition holds; 1: as long as it holds
  unsigned bodies = 1;     // number of graphs
  Graph *graphs = nullptr; // result; belongs to the node
  Context context = nullptr;
  int64_t reserved1[25] = {}, reserved2 = 0;
};
static_assert(sizeof(NodeParameters) == 256);

/// The driver's functions.
struct DriverFunctions {
#define BURIN_CUDA_FUNCTION(name, symbol, parameters) Result(*name) parameters = nullptr;
  BURIN_CUDA_FUNCTIONS(BURIN_CUDA_FUNCTION)
  BURIN_CUDA_OPTIONAL_FUNCTIONS(BURIN_CUDA_FUNCTION)
#undef BURIN_CUDA_FUNCTION
  /// Whether graphs can have branches and loops: CUDA 12.4. Null functions are missing.
  bool hasConditionalNodes() const;
};

/// Properties of a GPU.
struct DeviceInfo {
  std::string name;
  int major = 0, minor = 0; // compute capability
  int multiprocessors = 0;
  size_t memoryBytes = 0;
};

class Driver {
  DriverFunctions table;

public:
  /// Opens and initialises the driver, which stays open. Unsupported if there is none, if it lacks a function, or if it
  /// finds no device.
  static Status open(Driver &out, const char *library = "libcuda.so.1");

  const DriverFunctions *operator->() const { return &table; }

  /// All GPUs, by ordinal.
  Status devices(std::vector<DeviceInfo> &out) const;

  /// Converts a result to a status. `what` is the failed action: "cuda:0: launch of 'softmax' (model.cpp:12)".
  /// OutOfMemory for CUDA_ERROR_OUT_OF_MEMORY, else Internal; the message ends with the driver's name of the error.
  Status check(Result, const std::string &what) const;
};

} // namespace burin::rt::gpu
