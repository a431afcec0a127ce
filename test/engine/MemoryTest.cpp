#include "runtime/support/Memory.h"
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

using namespace burin::rt;

TEST_CASE("buffers of all sizes are aligned, writable and waste at most a quarter") {
  Memory memory(size_t(1) << 30);
  for (size_t bytes : {0, 1, 63, 64, 65, 500, 513, 4096, 5000, 65537, 1 << 20, 3 << 20, (16 << 20) + 1}) {
    memory.trim();
    BufferRef buffer = memory.allocate(bytes);
    REQUIRE(buffer);
    CHECK(buffer->size() == bytes);
    CHECK(reinterpret_cast<uintptr_t>(buffer->data()) % 64 == 0);
    CHECK(memory.stats().inUse >= bytes);
    CHECK(memory.stats().inUse <= (bytes + 128) * 5 / 4 + 64);
    std::memset(buffer->data(), 0xab, bytes);
  }
  CHECK(memory.stats().inUse == 0);
}

TEST_CASE("a freed block serves the next request of its size") {
  Memory memory(1 << 20);
  void *first = memory.allocate(1000)->data();
  CHECK(memory.stats().cached >= 1000);
  BufferRef again = memory.allocate(990);
  CHECK(again->data() == first);
  CHECK(memory.allocate(1000)->data() != first);
  CHECK(memory.stats().systemAllocations == 2);
}

TEST_CASE("references share a buffer and the last one frees it") {
  Memory memory(0);
  BufferRef a = memory.allocate(100);
  CHECK(a->unique());
  {
    BufferRef b = a, c;
    c = b;
    CHECK(!a->unique());
    CHECK(b == c);
  }
  CHECK(a->unique());
  BufferRef moved = std::move(a);
  CHECK(!a);
  moved = nullptr;
  CHECK(memory.stats().inUse == 0);
}

TEST_CASE("the cache keeps within its limit, in favour of what is used now") {
  Memory memory(100000);
  for (int i = 0; i < 50; ++i) {
    std::vector<BufferRef> held;
    for (int k = 0; k < 40; ++k)
      held.push_back(memory.allocate(1000 + 3000 * (i / 10)));
    held.clear();
    CHECK(memory.stats().cached <= 100000);
  }
  uint64_t before = memory.stats().systemAllocations;
  memory.allocate(13000); // the size of the last rounds is cached, although the cache was full of others
  CHECK(memory.stats().systemAllocations == before);
  memory.allocate(1 << 20); // larger than the whole cache
  CHECK(memory.stats().cached <= 100000);
  memory.trim(50000);
  CHECK(memory.stats().cached <= 50000);
  memory.setCacheLimit(0);
  CHECK(memory.stats().cached == 0);
}

TEST_CASE("the peak is that of bytes in use") {
  Memory memory(1 << 20);
  {
    BufferRef a = memory.allocate(10000), b = memory.allocate(20000);
  }
  CHECK(memory.stats().peak >= 30000);
  CHECK(memory.stats().peak < 45000);
  memory.resetPeak();
  memory.allocate(5000);
  CHECK(memory.stats().peak < 10000);
}

TEST_CASE("running out of memory is reported") {
  Memory memory(1 << 20);
  memory.allocate(1000);
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 63, size_t(1) << 60, size_t(1) << 45}) {
    CHECK(!memory.allocate(bytes));
    Status status = memory.exhausted(bytes);
    CHECK(status.code() == ErrorCode::OutOfMemory);
    CHECK(status.message().find("cannot allocate") != std::string::npos);
  }
  CHECK(memory.stats().inUse == 0);
  CHECK(memory.allocate(1000));
}

TEST_CASE("foreign memory is handed back once") {
  int bytes[4] = {}, freed = 0;
  BufferRef buffer = Memory::wrap(bytes, sizeof bytes, [](void *ctx) { ++*static_cast<int *>(ctx); }, &freed);
  CHECK(buffer->data() == bytes);
  CHECK(buffer->size() == sizeof bytes);
  BufferRef other = buffer;
  buffer = nullptr;
  CHECK(freed == 0);
  other = nullptr;
  CHECK(freed == 1);
  Memory::wrap(bytes, 0, nullptr, nullptr);
}

TEST_CASE("threads share the allocator") {
  Memory memory(1 << 18);
  std::atomic<int> mistakes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<BufferRef> held(32);
      for (int i = 0; i < 5000; ++i) {
        BufferRef &slot = held[random() % held.size()];
        if (slot) {
          auto *values = static_cast<unsigned char *>(slot->data());
          mistakes += values[0] != t || values[slot->size() - 1] != t;
        }
        slot = memory.allocate(1 + random() % 20000);
        std::memset(slot->data(), t, slot->size());
      }
    });
  for (auto &thread : threads)
    thread.join();
  CHECK(mistakes == 0);
  CHECK(memory.stats().inUse == 0);
  CHECK(memory.stats().cached <= 1 << 18);
}
