// Tensors from and to files and other libraries.
#pragma once
#include "burin/module.h"
#include <map>

// Of DLPack's dlpack.h, which callers include themselves.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace burin {

// ---- files. Any bytes are safe to load: what is not a whole, valid file throws. Files are written whole or not at
// all.

/// One array of a .npy file, or all of an .npz archive by their names.
BURIN_API Tensor load_npy(const std::string &path, Location where = Location::current());
BURIN_API void save_npy(const std::string &path, const Tensor &tensor, Location where = Location::current());
BURIN_API StateDict load_npz(const std::string &path, Location where = Location::current());
BURIN_API void save_npz(const std::string &path, const StateDict &tensors, bool compress = false,
                        Location where = Location::current());

/// The file is mapped: tensors are read when they are used, and the file must not be changed in place until they are
/// gone. `metadata` receives the file's free-text entries.
BURIN_API StateDict load_safetensors(const std::string &path, std::map<std::string, std::string> *metadata = nullptr,
                                     Location where = Location::current());
BURIN_API void save_safetensors(const std::string &path, const StateDict &tensors,
                                const std::map<std::string, std::string> &metadata = {},
                                Location where = Location::current());

/// The tensors of a state dict that PyTorch has saved (.pt, .pth, since 1.6: torch.save(model.state_dict(), path)), or
/// of dicts and lists of such: {"model": …, "optimizer": …} gives "model.fc.weight", "optimizer.state.0.exp_avg".
/// Numbers become tensors of rank 0, text is left out. The file is mapped as by load_safetensors. Nothing in it is
/// executed: pickles of anything but tensors, numbers, text, lists and dicts are refused with the name of what they
/// would call.
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
/// complete, and to_dlpack waits for them.
BURIN_API Tensor from_dlpack(DLManagedTensor *tensor, void *stream, Location where = Location::current());
BURIN_API DLManagedTensor *to_dlpack(const Tensor &tensor, void *stream, Location where = Location::current());

} // namespace burin
