// The public interface of symbolic sizes.
#include "burin/dim.h"
#include <catch2/catch.hpp>
#include <climits>
#include <stdexcept>

using burin::Dim;
using burin::Error;

namespace {
const Dim b("batch"), h("h"), w("w");

std::optional<int64_t> valueOf(const Dim &d, int64_t batch, int64_t height = 0, int64_t width = 0) {
  return d.evaluate([&](std::string_view name) -> std::optional<int64_t> {
    return name == "batch" ? batch : name == "h" ? height : name == "w" ? std::optional(width) : std::nullopt;
  });
}
} // namespace

TEST_CASE("equal expressions are equal however they are written") {
  CHECK(b + b == b * 2);
  CHECK((b + 1) * (b - 1) == b * b - 1);
  CHECK((b + h) * w == w * h + b * w);
  CHECK(b - b == Dim(0));
  CHECK(floordiv(b * 4, 2) == b * 2);
  CHECK(floordiv(b * h * 6, h * 2) == b * 3);
  CHECK(ceildiv(b * 4 + 1, 4) == b + 1);
  CHECK(mod(b * 6 + 4, 3) == Dim(1));
  CHECK(floordiv(floordiv(h, 2), 3) == floordiv(h, 6));
  CHECK(floordiv(floordiv(h - 1, 2) + 1, 2) == floordiv(h + 1, 4)); // two convolutions with stride 2
  CHECK(floordiv(floordiv(h, 2) * 3, 3) == floordiv(h, 2));
  CHECK(floordiv(floordiv(h, 2) * 2, 3) != floordiv(h, 3));
  CHECK(floordiv(b * h * 512 - b * 3072, b * (h - 6)) == 512); // polynomial division
  CHECK(floordiv(b * h * 512 - b * 3072, (h - 6) * 128) == b * 4);
  CHECK(floordiv(b * (h + w) * 64, b * 16) == h * 4 + w * 4);
  CHECK(floordiv(b * (h + w) * (b - w), b - w) == b * (h + w));
  CHECK(floordiv(b * h + w, h) != b);
  CHECK(floordiv(h * 2, 4) == floordiv(h, 2)); // cancels the common factor
  CHECK(floordiv(b * h, b * 4) == floordiv(h, 4));
  CHECK(floordiv(b * h * 6, b * w * 4) == floordiv(h * 3, w * 2));
  CHECK(floordiv(h + 3, 2) == floordiv(h + 1, 2) + 1);
  CHECK(ceildiv(h, 2) == floordiv(h + 1, 2));
  CHECK(min(b, h) == min(h, b));
  CHECK(b != h);
  CHECK(b + 1 != b);
  CHECK(floordiv(h, 2) * 2 != h);
}

TEST_CASE("sizes do not grow with the layers of a network") {
  CHECK(h + mod(Dim(7) - mod(h, 7), 7) == ceildiv(h, 7) * 7); // padded to whole windows
  CHECK(floordiv(h + mod(Dim(0) - h, 7), 7) == ceildiv(h, 7));
  CHECK(h - floordiv(h, 2) == ceildiv(h, 2));
  CHECK(floordiv(h, 2) + floordiv(h + 1, 2) == h);
  CHECK(floordiv(h + 5, 2) + floordiv(h, 2) == h + 2);
  CHECK((h - floordiv(h, 2)) + floordiv(h, 2) == h);
  CHECK(Dim(0) - (floordiv(h, 2) - h) == ceildiv(h, 2));
  CHECK(b * h - b * floordiv(h, 2) == b * ceildiv(h, 2));
  CHECK(floordiv(h, 2) - floordiv(h, 4) == floordiv(h + 2, 4));
  CHECK(max(h - 3, 0) + min(h, 3) == h); // both parts of a rolled dimension
  CHECK(max(h, w) * b + min(w, h) * b == b * (h + w));
  CHECK(max(h, w) - min(w, h) != h - w);
  Dim side = h;
  for (int layer = 0; layer < 6; ++layer) // padded to an even size, then every other row
    side = floordiv(side + mod(side, 2), 2);
  CHECK(side == ceildiv(h, 64));
  CHECK(floordiv(h * 3, 4) != h); // 3 must not be cancelled
  CHECK(lowerBound(b * mod(h, 5) + 2) == 2);
  CHECK(upperBound(mod(h, 5)) == 4);
}

TEST_CASE("min and max are decided where the sign of the difference is known") {
  CHECK(max(b, 0) == b);
  CHECK(min(b + h, b) == b);
  CHECK(max(b * 3 + 1, b) == b * 3 + 1);
  CHECK(max(Dim(3), Dim(-4)) == Dim(3));
  CHECK(min(min(b, 10), b) == min(b, 10));
  CHECK(max(min(b, 10), 0) == min(b, 10));
  CHECK(!min(b, 10).isStatic());
  CHECK(lowerBound(b - min(b, h)) == 0);
  CHECK(lowerBound(max(b, 2) * 3 - 1) == 5);
  CHECK(lowerBound(b - h) == std::nullopt);
  CHECK(lowerBound(Dim(4) - mod(b, 4)) == 1); // the largest remainder is 3
  CHECK(lowerBound(b - floordiv(b, 3)) == 0);
  CHECK(lowerBound(b + 1 - ceildiv(b, 2)) == 1);
  CHECK(lowerBound(b - floordiv(b * 2, 3) * 2) == std::nullopt);
  CHECK(lowerBound(floordiv(h, 2) * 2 - h) == -1); // the remainder is at most 1
  CHECK(lowerBound(ceildiv(h, 3) * 6 - h * 2) == 0);
  CHECK(isAtMost(h + 3, floordiv(h, 2) * 2 + 4));
  CHECK(!isAtMost(h + 3, floordiv(h, 3) * 3 + 4));
  Dim rest = floordiv(h + min(1, h) + 1, 2) - min(1, h);
  CHECK(lowerBound(rest - w, rest - w) == 0);
  CHECK(isAtMost(min(5, rest), rest, rest));
  CHECK(!isAtMost(rest, min(5, rest), rest));
}

TEST_CASE("a size reads as it is written") {
  CHECK(Dim(512).str() == "512");
  CHECK(b.str() == "batch");
  CHECK((b * 4 + 1).str() == "batch*4 + 1");
  CHECK((Dim(7) - b).str() == "-batch + 7");
  CHECK((h * b - w * 2 - 3).str() == "batch*h - w*2 - 3");
  CHECK((floordiv(h - 3, 2) + 1).str() == "floordiv(h + 1, 2) - 1");
  for (const Dim &d : {Dim(0), Dim(INT64_MIN), b, b * h * h - 1, Dim(0) - b, floordiv(b + 1, h), ceildiv(b, h) * 3,
                       mod(b * b, 7), min(b, h * 2), max(b - 4, h), floordiv(min(b, h) + 1, 3) - w}) {
    INFO(d.str());
    REQUIRE(Dim::parse(d.str()));
    CHECK(*Dim::parse(d.str()) == d);
    CHECK(Dim::parse(d.str())->str() == d.str());
  }
  CHECK(*Dim::parse(" ( batch+1 ) *2-batch ") == b + 2);
  CHECK(*Dim::parse("min") == Dim("min"));
}

TEST_CASE("what is not a size is refused") {
  for (const char *text : {"", " ", "batch +", "2x", "batch h", "(batch", "foo(1, 2)", "min(1)", "min(batch, )",
                           "99999999999999999999", "1/2", "floordiv(batch, 0)", "batch + é", "--1"})
    CHECK_FALSE(Dim::parse(text));
  CHECK_FALSE(Dim::parse(std::string(10000, '(')));
  CHECK_FALSE(Dim::parse("9223372036854775807*batch*2"));
  std::string power = "(a+b+c+d+e+f+g)";
  for (int i = 0; i < 20; ++i)
    power += "*(a+b+c+d+e+f+g)";
  CHECK_FALSE(Dim::parse(power));
  CHECK_THROWS_AS(Dim("1st"), Error);
  CHECK_THROWS_AS(Dim(""), Error);
  CHECK_THROWS_AS(Dim("a b"), Error);
}

TEST_CASE("values follow from the symbols' values") {
  for (int64_t batch : {0, 1, 2, 7, 100})
    for (int64_t height : {1, 2, 3, 64}) {
      INFO(batch << " " << height);
      CHECK(valueOf(b * h + 3, batch, height) == batch * height + 3);
      CHECK(valueOf(floordiv(b - 5, 3), batch) == (batch + 4) / 3 - 3);
      CHECK(valueOf(ceildiv(b, h), batch, height) == (batch + height - 1) / height);
      CHECK(valueOf(mod(b - 9, 4), batch) == (batch + 3) % 4);
      CHECK(valueOf(min(b, h) - max(b, h), batch, height) == -std::abs(batch - height));
    }
  CHECK(valueOf(floordiv(b, h), 1, 0) == std::nullopt);
  CHECK(valueOf(b * Dim(INT64_MAX), 2) == std::nullopt);
  CHECK(Dim("other").evaluate([](std::string_view) { return std::nullopt; }) == std::nullopt);
}

TEST_CASE("symbols can be listed and replaced") {
  Dim d = floordiv(b * h, 2) + min(w, b);
  std::vector<std::string> names;
  for (const Dim::Symbol &symbol : d.symbols())
    names.push_back(symbol.name);
  CHECK(names == std::vector<std::string>{"batch", "h", "w"});
  CHECK(Dim(3).symbols().empty());
  Dim replaced = d.substitute([](std::string_view name) { return name == "h" ? Dim(4) : Dim(name); });
  CHECK(replaced == b * 2 + min(w, b));
  CHECK(d.substitute([](std::string_view) { return Dim(3); }) == Dim(7));
}

TEST_CASE("arithmetic that does not fit is an error, not a wrong size") {
  CHECK_THROWS_AS(Dim(INT64_MAX) + 1, Error);
  CHECK_THROWS_AS(Dim(INT64_MAX / 2) * 3, Error);
  CHECK_THROWS_AS(b * Dim(INT64_MAX) + b, Error);
  CHECK_THROWS_AS(floordiv(Dim(INT64_MIN), -1), Error);
  CHECK_THROWS_AS(floordiv(b, 0), Error);
  CHECK_THROWS_AS(b.value(), Error);
}

TEST_CASE("specs print as users write them") {
  CHECK(burin::str(burin::TensorSpec{burin::f32, {b, 512}}) == "f32[batch, 512]");
  CHECK(burin::str(burin::Shape{}) == "[]");
  CHECK(burin::elements({b, 4, 2}) == b * 8);
  CHECK(burin::elements({}) == Dim(1));
}

TEST_CASE("what ranges and factors tell is known") {
  const Dim n("n", 8, 64), rows("rows", 2, INT64_MAX);
  CHECK(n.str() == "n{8..64}");
  CHECK(rows.str() == "rows{2..}");
  CHECK((n * 2 - 1).str() == "n{8..64}*2 - 1");
  for (const Dim &d : {n, rows * 3 + 1, floordiv(n + 1, 2) * rows})
    CHECK(*Dim::parse(d.str()) == d);
  for (const char *text : {"n{}", "n{1}", "n{5..4}", "n{..4}", "n{-1..4}", "n{1..4"})
    CHECK_FALSE(Dim::parse(text));
  CHECK(lowerBound(n) == 8);
  CHECK(upperBound(n) == 64);
  CHECK(upperBound(rows) == std::nullopt);
  CHECK(lowerBound(rows * n - 1) == 15);
  CHECK(upperBound(Dim(100) - n * 2) == 84);
  CHECK(upperBound(floordiv(n + 1, 4)) == 16);
  CHECK(upperBound(mod(b, n)) == 63);
  CHECK(upperBound(min(n, b)) == 64);
  CHECK(min(n, 100) == n);
  CHECK(max(n, 8) == n);
  CHECK(min(n, 8) == Dim(8));
  CHECK(floordiv(n, 65) == Dim(0));
  CHECK(mod(n, 65) == n);
  CHECK(!floordiv(n, 64).isStatic());
  CHECK(isMultipleOf(b * 8 + 16, 4));
  CHECK(!isMultipleOf(b * 8 + 2, 4));
  CHECK(n != Dim("n"));
  CHECK(!mayEqual(n, 7));
  CHECK(mayEqual(n, 9));
  CHECK(n.symbol()->max == 64);
  CHECK((n * 8).symbol().has_value() == false);
  CHECK((n * 8 + 3).linear()->scale == 8);
  CHECK((n * 8 + 3).linear()->offset == 3);
  CHECK((n * b).linear().has_value() == false);
  CHECK((Dim(9) - n).linear().has_value() == false);
  CHECK_THROWS_AS(Dim("n", -1, 3), Error);
  CHECK_THROWS_AS(Dim("n", 4, 3), Error);
}

TEST_CASE("comparisons are truth values, which choose between sizes") {
  Dim isLarge = min(max(b - 4, 0), 1), isWide = min(max(w - h, 0), 1); // b > 4, w > h
  CHECK(isLarge * isLarge == isLarge);
  CHECK(isLarge * (Dim(1) - isLarge) == Dim(0));
  CHECK(isLarge * isWide * isLarge == isLarge * isWide);
  CHECK(floordiv(isLarge * (b - h), b - h) == isLarge);
  Dim chosen = h + isLarge * (w - h); // b > 4 ? w : h
  CHECK(valueOf(chosen, 4, 2, 3) == 2);
  CHECK(valueOf(chosen, 5, 2, 3) == 3);
  CHECK(lowerBound(chosen) == 0);
  CHECK(lowerBound(chosen + 7) == 7);
  CHECK(lowerBound(isLarge * (w - h)) == std::nullopt);
  Dim number = Dim(3) + isLarge * Dim(-3);
  CHECK(lowerBound(number) == 0);
  CHECK(upperBound(number) == 3);
  CHECK(Dim::parse(chosen.str()) == chosen);
}
