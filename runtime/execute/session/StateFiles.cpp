// Files of states: safetensors with one tensor per state, by name.
#include "runtime/code/MappedFile.h"
#include "runtime/execute/ShapeBinding.h"
#include "runtime/execute/session/Session.h"
#include "runtime/format/Safetensors.h"
#include "runtime/support/JoinedText.h"
#include <algorithm>

namespace burin::rt {

Status Session::saveStates(const std::string &path) {
  SessionHold hold(busy);
  if (!hold.ok())
    return SessionHold::refusal();
  SafetensorsFile content;
  std::vector<uint32_t> order; // wide elements first, as in the file
  for (unsigned width = 8; width; width /= 2)
    for (uint32_t i = 0; i < states.size(); ++i)
      if (const State &state = program().artifact().states[i]; byteWidth(state.dtype) == width) {
        content.tensors.push_back({state.name, state.dtype, state.shape});
        order.push_back(i);
      }
  std::vector<std::byte> header;
  std::string problem;
  if (!startSafetensors(content, header, problem))
    return {ErrorCode::InvalidArgument, std::move(problem)};
  std::vector<Bytes> parts{header};
  for (uint32_t i : order) {
    TensorView view;
    if (Status s = readState(i, view); !s.ok())
      return s;
    parts.emplace_back(static_cast<const std::byte *>(view.data), states[i].bytes);
  }
  return writeFile(path, parts);
}

/// Where the values of the states begin in a file's bytes.
Status Session::valuesIn(Bytes file, const std::string &path, std::vector<const std::byte *> &values) const {
  const std::vector<State> &known = program().artifact().states;
  std::string problem;
  std::optional<SafetensorsFile> content = parseSafetensors(file, problem);
  if (!content)
    return {ErrorCode::BadArtifact, joined({"cannot read '", path, "': ", problem})};
  values.resize(known.size());
  using Parts = std::initializer_list<std::string_view>;
  auto refuse = [](Parts what) { return Status(ErrorCode::InvalidArgument, joined(what)); };
  for (const Safetensor &tensor : content->tensors) {
    auto state = std::ranges::find(known, tensor.name, &State::name);
    if (state == known.end())
      return refuse({path, " holds ", tensor.name, ", which is no state of the artifact"});
    if (tensor.dtype != state->dtype || tensor.shape != state->shape)
      return refuse({path, " holds ", tensorText(tensor.dtype, tensor.shape), " for the state ", state->name,
                     ", which is ", tensorText(state->dtype, state->shape)});
    Bytes bytes = file.subspan(tensor.begin, tensor.bytes());
    if (isBool(tensor.dtype) && std::ranges::any_of(bytes, [](std::byte b) { return b > std::byte(1); }))
      return {ErrorCode::BadArtifact,
              joined({"cannot read '", path, "': ", tensor.name, " is bool, but has elements other than 0 and 1"})};
    values[size_t(state - known.begin())] = bytes.data();
  }
  for (size_t i = 0; i < known.size(); ++i)
    if (!values[i])
      return refuse({path, " lacks the state ", known[i].name, " ", tensorText(known[i].dtype, known[i].shape)});
  return {};
}

Status Session::loadStates(const std::string &path) {
  SessionHold hold(busy);
  if (!hold.ok())
    return SessionHold::refusal();
  Bytes file;
  std::shared_ptr<const void> owner;
  if (Status s = mapFile(path, file, owner); !s.ok())
    return s;
  std::vector<const std::byte *> values;
  if (Status s = valuesIn(file, path, values); !s.ok())
    return s;
  for (uint32_t i = 0; i < states.size(); ++i)
    if (Status s = overwriteState(i, values[i], false); !s.ok())
      return s;
  return {};
}

} // namespace burin::rt
