// Event files of TensorBoard: records (TFRecord framing) of messages of tensorflow/core/util/event.proto.
#include "burin/ops.h"
#include "burin/training/logs.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/training/logs/PngWriter.h"
#include "runtime/support/Checksum.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <protozero/pbf_writer.hpp>
#include <unistd.h>

namespace burin {

using detail::inScope;
using protozero::pbf_writer;

namespace {

constexpr const char *kOp = "SummaryWriter";

/// CRC-32C with the rotation and offset that records have.
uint32_t maskedChecksum(std::string_view bytes) {
  const uint32_t sum = rt::crc32c(std::as_bytes(std::span(bytes)));
  return (sum >> 15 | sum << 17) + 0xa282ead8;
}

template <class T> void append(std::string &out, T number) { // little-endian
  for (size_t i = 0; i < sizeof number; ++i)
    out += char(number >> 8 * i & 255);
}

std::string record(const std::string &message) {
  std::string length, out;
  append(length, uint64_t(message.size()));
  out = length;
  append(out, maskedChecksum(length));
  out += message;
  append(out, maskedChecksum(message));
  return out;
}

using Clock = std::chrono::system_clock;
double secondsOf(Clock::time_point time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }

/// The elements of a tensor in equal intervals, as HistogramProto.
void writeHistogram(pbf_writer &message, std::span<const double> values, int64_t bins) {
  const auto [low, high] = std::ranges::minmax(values);
  const double width = high > low ? (high - low) / double(bins) : 1;
  std::vector<double> limits, counts(size_t(bins), 0);
  for (int64_t i = 1; i <= bins; ++i)
    limits.push_back(i == bins && high > low ? high : low + width * double(i));
  double sum = 0, squares = 0;
  for (double value : values) {
    ++counts[size_t(std::clamp<double>((value - low) / width, 0, double(bins - 1)))];
    sum += value;
    squares += value * value;
  }
  message.add_double(1, low);
  message.add_double(2, high);
  message.add_double(3, double(values.size()));
  message.add_double(4, sum);
  message.add_double(5, squares);
  message.add_packed_double(6, limits.begin(), limits.end());
  message.add_packed_double(7, counts.begin(), counts.end());
}

} // namespace

struct SummaryWriter::State {
  std::string path, pending;
  std::mutex mutex;
  int file = -1;
  std::chrono::steady_clock::time_point written = std::chrono::steady_clock::now();

  ~State() {
    if (file < 0)
      return;
    try {
      write({});
    } catch (const Error &) { // flush() reports it
    }
    ::close(file);
  }

  void write(const Location &where) {
    for (std::string_view rest = pending; !rest.empty();) {
      const ssize_t count = ::write(file, rest.data(), rest.size());
      if (count < 0 && errno != EINTR) {
        const int problem = errno;
        pending.erase(0, pending.size() - rest.size());
        throw Error(where, kOp, "cannot write " + path + ": " + std::strerror(problem));
      }
      rest.remove_prefix(size_t(std::max<ssize_t>(count, 0)));
    }
    pending.clear();
    written = std::chrono::steady_clock::now();
  }

  /// Adds an event whose field `write(message)` makes.
  template <class F> void addEvent(int64_t step, const Location &where, F writeField) {
    std::string message;
    pbf_writer event(message);
    event.add_double(1, secondsOf(Clock::now()));
    event.add_int64(2, step);
    writeField(event);
    std::lock_guard lock(mutex);
    pending += record(message);
    if (std::chrono::steady_clock::now() - written > std::chrono::seconds(2))
      write(where);
  }

  /// Adds a value of a summary.
  template <class F> void addValue(const std::string &tag, int64_t step, const Location &where, F writeField) {
    addEvent(step, where, [&](pbf_writer &event) {
      pbf_writer summary(event, 5), value(summary, 1);
      value.add_string(1, tag);
      writeField(value);
    });
  }
};

SummaryWriter::SummaryWriter(std::string folder, Location where) : state(new State) {
  const Location place = inScope(where);
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem)
    throw Error(place, kOp, "cannot make the folder \"" + folder + "\": " + problem.message());
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  const std::string start = folder + "/events.out.tfevents." + std::to_string(int64_t(secondsOf(Clock::now()))) + "." +
                            host + "." + std::to_string(::getpid());
  for (int number = 0; state->file < 0; ++number) { // an earlier writer may have the same second
    state->path = start + "." + std::to_string(number);
    state->file = ::open(state->path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (state->file < 0 && errno != EEXIST)
      throw Error(place, kOp, "cannot write " + state->path + ": " + std::strerror(errno));
  }
  state->addEvent(0, place, [](pbf_writer &event) { event.add_string(3, "brain.Event:2"); });
  flush(place);
}
SummaryWriter::~SummaryWriter() = default;
SummaryWriter::SummaryWriter(SummaryWriter &&) noexcept = default;

const std::string &SummaryWriter::path() const { return state->path; }

void SummaryWriter::flush(Location where) {
  std::lock_guard lock(state->mutex);
  state->write(inScope(where));
}

void SummaryWriter::add_scalar(const std::string &tag, double value, int64_t step, Location where) {
  state->addValue(tag, step, inScope(where), [&](pbf_writer &message) { message.add_float(2, float(value)); });
}

void SummaryWriter::add_histogram(const std::string &tag, const Tensor &values, int64_t step, int64_t bins,
                                  Location where) {
  const Location place = inScope(where);
  if (bins < 1)
    throw Error(place, "add_histogram", "the number of bins must be positive");
  const std::vector<double> numbers = values.to_vector<double>(place);
  if (numbers.empty() || !std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); }))
    throw Error(place, "add_histogram",
                "the values of \"" + tag + "\", " + str(values.spec(place)) + ", must be finite, and at least one");
  state->addValue(tag, step, place, [&](pbf_writer &message) {
    pbf_writer histogram(message, 5);
    writeHistogram(histogram, numbers, bins);
  });
}

void SummaryWriter::add_image(const std::string &tag, const Tensor &image, int64_t step, Location where) {
  const Location place = inScope(where);
  const TensorSpec spec = image.spec(place);
  const int64_t channels = spec.shape.size() == 3 ? spec.shape[0].value() : 0;
  if ((channels != 1 && channels != 3) || (spec.dtype != DType::f32 && spec.dtype != DType::u8))
    throw Error(place, "add_image", "it takes images f32 or u8, [1, H, W] or [3, H, W], not " + str(spec));
  const size_t height = size_t(spec.shape[1].value()), width = size_t(spec.shape[2].value()), plane = height * width;
  if (plane == 0)
    throw Error(place, "add_image", "the image " + str(spec) + " has no pixels");
  const std::vector<double> values = image.to_vector<double>(place);
  std::vector<uint8_t> pixels(values.size()); // channels interleaved
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = spec.dtype == DType::f32 ? values[i] * 255 : values[i];
    pixels[i % plane * size_t(channels) + i / plane] = uint8_t(std::lround(std::clamp(value, 0.0, 255.0)));
  }
  state->addValue(tag, step, place, [&](pbf_writer &message) {
    pbf_writer picture(message, 4);
    picture.add_int32(1, int32_t(height));
    picture.add_int32(2, int32_t(width));
    picture.add_int32(3, int32_t(channels)); // 1: grey levels, 3: RGB
    picture.add_bytes(4, detail::pngOf(pixels, width, height, size_t(channels)));
  });
}

void SummaryWriter::add_text(const std::string &tag, const std::string &text, int64_t step, Location where) {
  state->addValue(tag, step, inScope(where), [&](pbf_writer &message) {
    {
      pbf_writer metadata(message, 9), plugin(metadata, 1);
      plugin.add_string(1, "text");
    }
    pbf_writer tensor(message, 8);
    tensor.add_enum(1, 7); // DT_STRING
    {
      pbf_writer shape(tensor, 2), dim(shape, 2);
      dim.add_int64(1, 1);
    }
    tensor.add_bytes(8, text);
  });
}

} // namespace burin
