#include "burin/nn/transformer.h"
#include "burin/tensor/composed.h"
#include "burin/tensor/creation.h"
#include "frontend/nn/Layer.h"
#include "frontend/tensor/context/LocationScope.h"
#include "frontend/tensor/functions/Creation.h"
#include "frontend/trace/Trace.h"

namespace burin::nn {

KVCache::KVCache(int64_t batch, int64_t heads, int64_t length, int64_t size, DType dtype, Location where) {
  LocationScope scope(where);
  if (batch < 1 || heads < 1 || length < 1 || size < 1 || !isFloat(dtype))
    throw Error(detail::inScope(where), "KVCache", "batch, heads, length and size must be positive, and dtype a float");
  keys = register_buffer("keys", zeros({batch, heads, length, size}, dtype));
  values = register_buffer("values", zeros({batch, heads, length, size}, dtype));
}

/// positions[i], positions[i] + 1, …, for m tokens: i64 [n, 1, m, 1].
static Tensor places(const KVCache &cache, const Tensor &positions, const Dim &m, const Location &where) {
  if (positions.rank(where) != 1 || positions.dtype() != DType::i64)
    throw Error(where, "KVCache", "positions are " + burin::str(positions.spec()) + ", but must be i64[n]");
  const Dim length = cache.keys->shape()[2];
  Tensor fits = (positions >= 0) & (positions <= detail::sizeTensor(length) - detail::sizeTensor(m));
  Tensor first = check(fits, positions, "KVCache: a position is beyond the " + length.str() + " tokens of the cache");
  return reshape(first, {positions.shape()[0], 1, 1, 1}) + iota({1, 1, m, 1}, DType::i64, 2);
}

/// The number of sequences, which must not exceed the room in the cache. A symbol is checked in each run.
static Dim sequences(const Dim &given, const Dim &room, const Location &where) {
  if (isAtMost(given, room))
    return given;
  if (given.isStatic())
    throw Error(where, "KVCache", given.str() + " sequences do not fit into a cache for " + room.str());
  const Dim limited = min(given, room);
  Trace::active()->require(given, limited, where);
  return limited;
}

std::pair<Tensor, Tensor> KVCache::update(const Tensor &key, const Tensor &value, const Tensor &positions,
                                          Location where) const {
  LocationScope scope(where);
  const Location place = detail::inScope(where);
  const Shape held = keys->shape(), given = key.shape(place);
  if (given.size() != 4 || given[1] != held[1] || given[3] != held[3] || value.shape(place) != given ||
      positions.shape(place) != Shape{given[0]})
    throw Error(place, "KVCache",
                "key " + burin::str(key.spec()) + ", value " + burin::str(value.spec()) + " and positions " +
                    burin::str(positions.spec()) + " do not fit: they must be [n, " + held[1].str() + ", m, " +
                    held[3].str() + "] twice, and [n]");
  const Dim batch = sequences(given[0], held[0], place);
  auto renamed = [&](const Tensor &x, const Dim &from, const Dim &to) {
    Shape shape = x.shape();
    shape[0] = to;
    return from == to ? x : Trace::active()->reshapeUnproved(x, shape, place);
  };
  Tensor at = renamed(broadcast_to(places(*this, positions, given[2], place), given), given[0], batch);
  auto put = [&](Parameter cache, const Tensor &tokens) {
    // All positions have been checked, so that nothing can fail once the cache is written.
    cache.set(scatter(cache, at, renamed(tokens.to(cache->dtype()), given[0], batch), 2, "set", /*drop=*/true));
    return batch == held[0] ? cache.value() : renamed(narrow(cache.value(), 0, 0, batch), batch, given[0]);
  };
  Tensor allKeys = put(keys, key);
  return {allKeys, put(values, value)};
}

Tensor KVCache::mask(const Tensor &positions, const Dim &m, Location where) const {
  LocationScope scope(where);
  Tensor at = places(*this, positions, m, detail::inScope(where));
  return iota({1, 1, 1, keys->shape()[2]}, DType::i64, 3) <= at;
}

} // namespace burin::nn
