// A case of the bundle for machines with a GPU: a safetensors file with the inputs "in0", …, what is expected, "out0",
// …, and how far results that are floats may be from it, "margin0", … (f32).
#pragma once
#include "runtime/npy/Npy.h"
#include <map>
#include <string>

namespace burin::test::bundle {

using Arrays = std::map<std::string, rt::NpyArray>;

bool save(const std::string &path, const Arrays &arrays, std::string &error);
std::optional<Arrays> load(const std::string &path, std::string &error);

/// A line of the list of cases, cases.txt: "name artifact function file", files relative to the list. Cases of one
/// artifact run one after the other in one session.
inline constexpr const char *kList = "cases.txt";

} // namespace burin::test::bundle
