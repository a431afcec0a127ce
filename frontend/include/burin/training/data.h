// Tensors in files and in memory of other libraries.
#pragma once
#include "burin/nn/module.h"
#include <map>

// From DLPack's dlpack.h, which callers include themselves.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace burin {

// ---- files. Loading is safe for any bytes: incomplete and invalid files throw. Writing is atomic.

/// One array of a .npy file, or all of an .npz archive by name.
BURIN_API Tensor load_npy(const std::string &path, Location where = Location::current());
BURIN_API void save_npy(const std::string &path, const Tensor &tensor, Location where = Location::current());
BURIN_API StateDict load_npz(const std::string &path, Location where = Location::current());
BURIN_API void save_npz(const std::string &path, const StateDict &tensors, bool compress = false,
                        Location where = Location::current());

/// The file is mapped: tensors are read when they are used, and the file must not be changed in place while they exist.
/// `metadata` receives the free-text entries of the file.
BURIN_API StateDict load_safetensors(const std::string &path, std::map<std::string, std::string> *metadata = nullptr,
                                     Location where = Location::current());
BURIN_API void save_safetensors(const std::string &path, const StateDict &tensors,
                                const std::map<std::string, std::string> &metadata = {},
                                Location where = Location::current());

/// Writes all parameters and buffers as safetensors, and reads them back into a module of the same structure. As
/// torch::save, torch::load of modules.
inline void save(const nn::Module &module, const std::string &path, Location where = Location::current()) {
  save_safetensors(path, module.state_dict(), {}, where);
}
inline void load(nn::Module &module, const std::string &path, Location where = Location::current()) {
  module.load_state_dict(load_safetensors(path, nullptr, where), true, where);
}

/// The tensors of a state dict saved by PyTorch (.pt, .pth, since 1.6: torch.save(model.state_dict(), path)), or of
/// nested dicts and lists: {"model": …, "optimizer": …} gives "model.fc.weight", "optimizer.state.0.exp_avg". Numbers
/// become tensors of rank 0, text is skipped. The file is mapped as by load_safetensors. Nothing in it is executed:
/// pickles of anything but tensors, numbers, text, lists and dicts are rejected, with the name of the function that
/// they would call.
BURIN_API StateDict load_pth(const std::string &path, Location where = Location::current());

// ---- DLPack: memory shared with other libraries, without a copy

/// Takes over a tensor in the memory of the process, or of a GPU, and calls its deleter after the last use; on an
/// exception it stays the caller's. Elements that are not dense and row-major are copied, and the tensor given back at
/// once.
BURIN_API Tensor from_dlpack(DLManagedTensor *tensor, Location where = Location::current());
BURIN_API Tensor from_dlpack(DLManagedTensorVersioned *tensor, Location where = Location::current());
/// Waits for the value. The caller owns the result until it calls its deleter, and must not write to the elements, as
/// other tensors may share them.
BURIN_API DLManagedTensor *to_dlpack(const Tensor &tensor, Location where = Location::current());
BURIN_API DLManagedTensorVersioned *to_dlpack_versioned(const Tensor &tensor, Location where = Location::current());

/// The same for a tensor on a GPU, in the order of a CUstream: what the stream has done before is there for whoever
/// uses the tensor made, or works on the stream after the call. Without one, from_dlpack expects elements that are
/// complete, and to_dlpack waits for them. As DLPack has it, 1 and 2 are the default streams, and -1, cast to a
/// pointer, asks for no order at all: who uses the elements sees to it.
BURIN_API Tensor from_dlpack(DLManagedTensor *tensor, void *stream, Location where = Location::current());
BURIN_API Tensor from_dlpack(DLManagedTensorVersioned *tensor, void *stream, Location where = Location::current());
BURIN_API DLManagedTensor *to_dlpack(const Tensor &tensor, void *stream, Location where = Location::current());
BURIN_API DLManagedTensorVersioned *to_dlpack_versioned(const Tensor &tensor, void *stream,
                                                        Location where = Location::current());

} // namespace burin
