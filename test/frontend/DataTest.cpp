#include "frontend/tensor/data/DlpackAbi.h"
#include "test/frontend/Check.h"
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace std::string_literals;

namespace {
/// A folder that the destructor removes.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("burin-data-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string &name) const { return (path / name).string(); }
};

void write(const std::string &path, const std::string &bytes) { std::ofstream(path, std::ios::binary) << bytes; }
std::string read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns a safetensors file with this header.
std::string safetensors(const std::string &header, const std::string &elements) {
  uint64_t size = header.size();
  return std::string(reinterpret_cast<char *>(&size), 8) + header + elements;
}

const DType kAll[] = {f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean, f8e4m3fn, f8e5m2};
StateDict oneOfEach() {
  StateDict tensors;
  for (DType type : kAll)
    tensors.emplace_back("x." + std::string(name(type)), tensor({{0, 1, 2}, {3, 0, 1}}).to(type));
  tensors.emplace_back("empty", zeros({0, 4}));
  tensors.emplace_back("scalar", tensor(2.5));
  return tensors;
}
void checkEqual(const StateDict &a, const StateDict &b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    INFO(a[i].first);
    CHECK(a[i].first == b[i].first);
    CHECK(a[i].second.spec() == b[i].second.spec());
    CHECK(a[i].second.to_vector<double>() == b[i].second.to_vector<double>());
  }
}
} // namespace

TEST_CASE("npy and npz round trips") {
  Folder folder;
  for (const auto &[name, x] : oneOfEach()) {
    save_npy(folder / "x.npy", x);
    checkEqual({{name, load_npy(folder / "x.npy")}}, {{name, x}});
  }
  for (bool compress : {false, true}) {
    save_npz(folder / "x.npz", oneOfEach(), compress);
    checkEqual(load_npz(folder / "x.npz"), oneOfEach());
  }
  CHECK_ERROR(load_npy(folder / "none.npy"), "none.npy");
  write(folder / "bad.npy", "\x93NUMPY\x01");
  CHECK_ERROR(load_npy(folder / "bad.npy"), "load_npy");
}

TEST_CASE("safetensors round trip, files are mapped") {
  Folder folder;
  save_safetensors(folder / "x.safetensors", oneOfEach(), {{"format", "pt"}});
  std::map<std::string, std::string> metadata;
  StateDict tensors = load_safetensors(folder / "x.safetensors", &metadata);
  checkEqual(tensors, oneOfEach());
  CHECK(metadata.at("format") == "pt");
  std::ifstream maps("/proc/self/maps");
  std::string text{std::istreambuf_iterator<char>(maps), {}};
  CHECK(contains(text, "x.safetensors"));
  CHECK(tensors.at("scalar").item() == 2.5);
  CHECK_ERROR(tensors.at("y"), "\"y\"", "14 tensors");
}

TEST_CASE("safetensors written by others need not be aligned") {
  Folder folder;
  write(folder / "x", safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "\0\0\x80\x3f"s));
  CHECK(load_safetensors(folder / "x").at("a").item() == 1.0);
}

TEST_CASE("hostile safetensors are refused with a reason") {
  Folder folder;
  auto refused = [&](const std::string &bytes) {
    write(folder / "x", bytes);
    std::string what = messageOf([&] { load_safetensors(folder / "x"); });
    CHECK(lines(what) <= 6);
    return what;
  };
  auto entry = [&](const std::string &json, const std::string &elements = "12345678") {
    return refused(safetensors("{\"a\":" + json + "}", elements));
  };
  CHECK(contains(refused(""), "0 bytes"));
  CHECK(contains(refused("\xff\xff\xff\xff\xff\xff\xff\x7f"), "does not fit the file"));
  CHECK(contains(refused(safetensors("[1]", "")), "not a JSON object"));
  CHECK(contains(refused(safetensors("{\"a\":", "")), "not a JSON object"));
  CHECK(contains(refused(safetensors(std::string(100000, '['), "")), "not a JSON object"));
  CHECK(contains(entry("5"), "lacks a valid dtype"));
  CHECK(contains(entry(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), "lacks a valid"));
  CHECK(contains(entry(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})"), "lacks a valid"));
  CHECK(contains(entry(R"({"dtype":"F8_E8M0","shape":[4],"data_offsets":[0,4]})"), "F8_E8M0"));
  CHECK(contains(entry(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), "outside"));
  CHECK(contains(entry(R"({"dtype":"F32","shape":[9],"data_offsets":[0,36]})"), "outside"));
  CHECK(contains(entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), "needs 8 bytes"));
  CHECK(contains(entry(R"({"dtype":"F64","shape":[9223372036854775807,4],"data_offsets":[0,0]})"), "impossible shape"));
  CHECK(contains(entry(R"({"dtype":"BOOL","shape":[4],"data_offsets":[0,4]})"), "other than 0 and 1"));
  std::string one = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  CHECK(contains(refused(safetensors("{\"a\":" + one + ",\"b\":" + one + "}", "1234")), "overlap"));
  CHECK(contains(refused(safetensors("{\"a\":" + one + ",\"a\":" + one + "}", "1234")), "twice"));
  // Every truncation and every flipped byte of a valid file either loads or throws Error; none crashes.
  save_safetensors(folder / "x", {{"w", tensor({1.0, 2.0})}, {"b", tensor({true})}});
  const std::string good = read(folder / "x");
  for (size_t i = 0; i < good.size(); ++i) {
    refused(good.substr(0, i));
    std::string flipped = good;
    flipped[i] ^= 0x11;
    refused(flipped);
  }
}

TEST_CASE("DLPack shares memory in both directions") {
  Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  DLManagedTensor *exported = to_dlpack(x);
  CHECK(exported->dl_tensor.data == x.data<float>().data());
  CHECK(exported->dl_tensor.ndim == 2);
  CHECK(exported->dl_tensor.strides[0] == 2);
  x = Tensor();
  {
    Tensor y = from_dlpack(exported); // the deleter runs with the last reference
    CHECK(y.data<float>().data() == exported->dl_tensor.data);
    CHECK(floats(y * 2) == std::vector<float>{2, 4, 6, 8});
  }
  for (DType type : kAll) {
    DLManagedTensorVersioned *versioned = to_dlpack_versioned(zeros({3}, type));
    CHECK(versioned->version.major == 1);
    CHECK((versioned->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0);
    CHECK(str(from_dlpack(versioned).spec()) == std::string(name(type)) + "[3]");
  }
}

TEST_CASE("DLPack tensors that cannot be shared are copied or refused") {
  static int deleted;
  deleted = 0;
  float memory[] = {1, 2, 3, 4, 5, 6};
  int64_t shape[] = {3, 2}, strides[] = {1, 3};
  DLManagedTensor foreign{
      {memory, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, strides, 0}, nullptr, [](DLManagedTensor *) { ++deleted; }};
  CHECK(floats(from_dlpack(&foreign)) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(deleted == 1);
  foreign.dl_tensor.strides = nullptr;
  foreign.dl_tensor.byte_offset = 4;
  shape[0] = 2;
  CHECK(floats(from_dlpack(&foreign)) == std::vector<float>{2, 3, 4, 5});
  synchronize();
  CHECK(deleted == 2);
  foreign.dl_tensor.device = {kDLCUDA, 99}; // a device that no machine has
  CHECK_ERROR(from_dlpack(&foreign), "from_dlpack", cuda_device_count() ? "no GPU cuda:99" : "CUDA driver");
  foreign.dl_tensor.device = {DLDeviceType(10), 0};
  CHECK_ERROR(from_dlpack(&foreign), "neither in the memory of the process nor on a CUDA GPU", "copy it to the CPU");
  foreign.dl_tensor.device = {kDLCPU, 0};
  foreign.dl_tensor.dtype.lanes = 4;
  CHECK_ERROR(from_dlpack(&foreign), "4 lanes");
  CHECK(deleted == 2); // the caller keeps tensors that were refused
}
