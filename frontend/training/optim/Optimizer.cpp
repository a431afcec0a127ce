// Base of the optimisers: groups, step counts, slots, and their names in a state dict.
#include "burin/graph/graph.h"
#include "burin/training/gradients.h"
#include "frontend/tensor/OnDevice.h"
#include "frontend/training/optim/OptimizerState.h"
#include "frontend/training/optim/RowUpdates.h"
#include <algorithm>
#include <charconv>
#include <set>

namespace burin::optim {

using detail::inScope;

Tensor initialValue(const TensorSpec &spec, double value, const Location &where, const Parameter *beside) {
  NoTrace noTrace;
  std::optional<detail::Beside> scope;
  if (beside)
    scope.emplace(beside->value(), where);
  return detail::following(full(spec.shape, value, spec.dtype, where));
}

Parameter scalarCell(const char *name, double value, DType dtype, const Location &where) {
  return Parameter::state(initialValue({dtype, {}}, value, where), name); // never a constant of compiled code
}

void setUnless(const Tensor &isLeftOut, Parameter cell, const Tensor &changed) {
  cell.set(isLeftOut.defined() ? where(isLeftOut, cell, changed) : changed);
}

void requireRate(double lr, const char *kind, const Location &where) {
  if (!isAmount(lr))
    throw Error(where, kind, "the learning rate is " + std::to_string(lr) + ", but must be finite and not negative");
}

std::shared_ptr<Optimizer::State> withParameters(std::shared_ptr<Optimizer::State> state, const Location &where) {
  if (std::ranges::all_of(state->groups, [](const Optimizer::State::Group &group) { return group.members.empty(); }))
    throw Error(where, state->kind,
                "there are no parameters; a module has those of its layers after register_module() of each");
  return state;
}

Optimizer::State::~State() = default;

Parameter Optimizer::State::Update::slot(const char *name, const Shape &shape, double initial) {
  for (auto &[known, slot] : member.slots)
    if (known == name)
      return slot;
  const TensorSpec spec{member.parameter->dtype(), shape};
  Parameter slot =
      Parameter::state(initialValue(spec, initial, inScope({}), &member.parameter), name, &member.parameter);
  return member.slots.emplace_back(name, slot).second;
}

void Optimizer::State::addGroup(const std::vector<Parameter> &params, double lr, std::optional<double> momentum,
                                const Location &where) {
  Group group{scalarCell("lr", lr, DType::f64, where), {}, lr, momentum.value_or(0), {}};
  if (momentum)
    group.momentum = scalarCell("momentum", *momentum, DType::f64, where);
  for (const Parameter &parameter : params) {
    if (!parameter.defined() || !isFloat(parameter->dtype(where)))
      throw Error(where, kind, "a parameter is absent or has integers; only floats can be trained");
    auto isIt = [&](const Member &member) { return member.parameter.is(parameter); };
    if (std::ranges::any_of(group.members, isIt) ||
        std::ranges::any_of(groups, [&](const Group &known) { return std::ranges::any_of(known.members, isIt); }))
      throw Error(where, kind,
                  "a parameter, " + str(parameter->spec(where)) +
                      ", is given twice, and would be updated twice; parameters() of a module has each parameter once");
    group.members.push_back({parameter, {}, -1});
  }
  groups.push_back(std::move(group));
  ++structure->version;
}

/// Increments the counters of the updated members; members that are not updated with the others of their counter get a
/// new one.
void Optimizer::State::count(const std::vector<Member *> &updated, const Tensor &isLeftOut, const Location &where) {
  std::map<int, std::vector<Member *>> byCounter;
  for (Member *member : updated)
    byCounter[member->counter].push_back(member);
  std::set<size_t> incremented; // in this order also in later steps, whose traces must be the same
  for (auto &[counter, members] : byCounter) {
    size_t all = 0;
    for (const Group &group : groups)
      all += size_t(std::ranges::count(group.members, counter, &Member::counter));
    int next = counter;
    if (counter < 0 || members.size() < all) {
      structure->version += counter >= 0; // compiled steps have the former counters
      next = int(counters.size());
      counters.push_back(scalarCell("step", 0, DType::i64, where));
      if (counter >= 0)
        counters[size_t(next)].set(counters[size_t(counter)], where);
      for (Member *member : members)
        member->counter = next;
    }
    incremented.insert(size_t(next));
  }
  for (size_t counter : incremented)
    setUnless(isLeftOut, counters[counter], counters[counter] + 1);
}

void Optimizer::State::step(const std::vector<Tensor> &gradients, const Location &where, const Tensor &isLeftOut) {
  step(gradients, RowGradients(gradients.size()), where, isLeftOut);
}

void Optimizer::State::step(const std::vector<Tensor> &gradients, const RowGradients &rows, const Location &where,
                            const Tensor &isLeftOut) {
  NoGrad noGrad;
  LocationScope scope(where);
  detail::observe(structure);
  std::vector<Update> updates;
  std::vector<Member *> updated;
  size_t at = 0;
  for (size_t g = 0; g < groups.size(); ++g)
    for (Member &member : groups[g].members) {
      const Tensor &gradient = gradients[at];
      const std::optional<detail::RowGradient> &byRows = rows[at++];
      if (!gradient.defined() && !byRows)
        continue;
      const Tensor &value = member.parameter.value();
      if (byRows) {
        updates.push_back({g, member, value, {}, {}, isLeftOut, uniqueRows(*byRows, value.spec(), isLeftOut)});
        updated.push_back(&member);
        continue;
      }
      if (gradient.shape() != value.shape())
        throw Error(where, kind,
                    "gradient " + std::to_string(at - 1) + " is " + str(gradient.spec()) + ", but its parameter is " +
                        str(value.spec()));
      updates.push_back({g, member, value, gradient.to(value.dtype()), {}, isLeftOut});
      updated.push_back(&member);
    }
  count(updated, isLeftOut, where);
  std::map<std::pair<size_t, int>, std::vector<Tensor>> known; // by group and counter
  for (Update &u : updates) {
    auto [entry, isNew] = known.try_emplace({u.group, u.member.counter});
    if (isNew)
      entry->second = factors(u.group, counters[size_t(u.member.counter)]->to(DType::f64));
    for (const Tensor &factor : entry->second)
      u.factors.push_back(factor.to(u.value.dtype()));
    if (u.rows) {
      u.value = Tensor(); // so that nothing but the parameter holds the table
      updateRows(u);
    } else {
      update(u);
    }
  }
}

// ---- the public part

void Optimizer::step(Location where) {
  std::vector<Tensor> gradients;
  State::RowGradients rows;
  for (size_t g = 0; g < state->groups.size(); ++g)
    for (const State::Member &member : state->groups[g].members) {
      const Tensor &parameter = member.parameter.value();
      const bool isTrained = parameter.requires_grad(); // frozen parameters have no gradient
      const bool isTraced = parameter.isTraced();
      Tensor gradient = isTrained && isTraced ? parameter.grad(where) : Tensor();
      rows.push_back(isTrained && state->takesRows(g) ? detail::rowGradientOf(parameter, gradient) : std::nullopt);
      if (isTrained && !isTraced && !rows.back())
        gradient = parameter.grad(where);
      gradients.push_back(rows.back() ? Tensor() : gradient);
    }
  state->step(gradients, rows, inScope(where));
}

void Optimizer::step(const std::vector<Tensor> &gradients, Location where) {
  const size_t count = parameters().size();
  if (gradients.size() != count)
    throw Error(inScope(where), state->kind,
                "there are " + std::to_string(gradients.size()) + " gradients for " + std::to_string(count) +
                    " parameters; give one per parameter, in the order of parameters()");
  State::RowGradients rows;
  std::vector<Tensor> whole = gradients;
  for (size_t g = 0; g < state->groups.size(); ++g)
    for (const State::Member &member : state->groups[g].members) {
      Tensor &gradient = whole[rows.size()];
      const bool mayHaveRows = gradient.defined() && gradient.isTraced() && state->takesRows(g);
      rows.push_back(mayHaveRows ? detail::rowGradientOf(member.parameter, gradient) : std::nullopt);
      if (rows.back())
        gradient = Tensor();
    }
  state->step(whole, rows, inScope(where));
}

std::vector<Tensor> Optimizer::gradients(const Tensor &loss, Location where) const {
  const std::vector<Parameter> params = parameters();
  std::vector<Tensor> trained, result(params.size());
  for (const Parameter &parameter : params)
    if (parameter->requires_grad())
      trained.push_back(parameter);
  std::vector<Tensor> found = grad(loss, trained, std::nullopt, {}, where);
  for (size_t i = 0, next = 0; i < params.size(); ++i)
    if (params[i]->requires_grad())
      result[i] = found[next++];
  return result;
}

void Optimizer::zero_grad(Location where) {
  for (const Parameter &parameter : parameters())
    if (parameter->requires_grad())
      parameter->set_grad(Tensor(), where);
}

std::vector<Parameter> Optimizer::parameters() const {
  std::vector<Parameter> all;
  for (const State::Group &group : state->groups)
    for (const State::Member &member : group.members)
      all.push_back(member.parameter);
  return all;
}

size_t Optimizer::groups() const { return state->groups.size(); }
static void requireGroup(const Optimizer::State &state, size_t group, const Location &where) {
  if (group >= state.groups.size())
    throw Error(where, state.kind,
                "there is no group " + std::to_string(group) + " among " + std::to_string(state.groups.size()));
}
double Optimizer::lr(size_t group, Location where) const {
  requireGroup(*state, group, inScope(where));
  return state->groups[group].lr->item(where);
}
void Optimizer::set_lr(double lr, size_t group, Location where) {
  requireGroup(*state, group, inScope(where));
  requireRate(lr, state->kind, inScope(where));
  state->groups[group].lr.set(initialValue({DType::f64, {}}, lr, inScope(where)), where);
}

// ---- state dicts

StateDict Optimizer::state_dict() const {
  StateDict result;
  size_t index = 0;
  for (const State::Group &group : state->groups)
    for (const State::Member &member : group.members) {
      const std::string prefix = "state." + std::to_string(index++) + ".";
      if (member.counter >= 0)
        result.emplace_back(prefix + "step", state->counters[size_t(member.counter)]->to(DType::f32));
      for (const auto &[name, slot] : member.slots)
        result.emplace_back(prefix + name, slot.value());
    }
  for (size_t g = 0; g < state->groups.size(); ++g) {
    const std::string prefix = "param_groups." + std::to_string(g) + ".";
    result.emplace_back(prefix + "lr", state->groups[g].lr.value());
    if (state->groups[g].momentum.defined())
      result.emplace_back(prefix + "momentum", state->groups[g].momentum.value());
  }
  return result;
}

namespace {

/// The parts of "state.3.exp_avg"; nullopt for other texts.
struct EntryName {
  std::string list, slot;
  size_t index;
  static std::optional<EntryName> parse(const std::string &name) {
    size_t first = name.find('.'), second = name.find('.', first + 1);
    if (second == std::string::npos)
      return std::nullopt;
    EntryName entry{name.substr(0, first), name.substr(second + 1), 0};
    auto [end, error] = std::from_chars(name.data() + first + 1, name.data() + second, entry.index);
    return error == std::errc() && end == name.data() + second ? std::optional(entry) : std::nullopt;
  }
};

/// A change by load_state_dict; all changes are checked before any is applied.
struct Change {
  Parameter cell; // value of a group; otherwise a slot or a count:
  Optimizer::State::Member *member;
  std::string slot;
  Tensor value;
};

class Loader {
public:
  Loader(Optimizer::State &state, const Location &where) : state(state), where(where) {
    for (size_t g = 0; g < state.groups.size(); ++g)
      for (auto &member : state.groups[g].members) {
        members.push_back(&member);
        kinds.push_back(state.slotKinds(g, member.parameter->shape()));
      }
  }

  void load(const StateDict &given) {
    std::vector<Change> changes;
    for (const auto &[name, value] : given)
      add(name, value, changes);
    requireAll(given, changes);
    bool isSame = true; // compiled steps go on with the same slots and counters
    for (auto *member : members)
      isSame &= loadSlots(*member, changes);
    isSame &= loadCounters(changes);
    for (Change &change : changes)
      if (change.cell.defined())
        change.cell.set(change.value.to(DType::f64), where);
    if (!isSame)
      ++state.structure->version;
  }

private:
  Optimizer::State &state;
  const Location &where;
  std::vector<Optimizer::State::Member *> members;
  std::vector<std::vector<Optimizer::State::SlotKind>> kinds; // of the slots of each member

  /// Throws if something is missing that the given values need.
  void requireAll(const StateDict &given, std::vector<Change> &changes) {
    for (size_t g = 0; g < state.groups.size(); ++g)
      if (const std::string name = "param_groups." + std::to_string(g) + ".lr"; !given.find(name))
        fail("there is no \"" + name + "\"");
    for (size_t i = 0; i < members.size(); ++i) {
      auto has = [&](const std::string &slot) {
        return std::ranges::any_of(changes, [&](const Change &c) { return c.member == members[i] && c.slot == slot; });
      };
      const bool isAbsent =
          std::ranges::none_of(changes, [&](const Change &change) { return change.member == members[i]; });
      if (isAbsent) // it has never been updated
        continue;
      const std::string prefix = "state." + std::to_string(i) + ".";
      for (const auto &kind : kinds[i])
        if (kind.isNeeded && !has(kind.name))
          fail("there is no \"" + prefix + kind.name + "\"");
      if (!has("step") && state.needsCount())
        fail("there is no \"" + prefix + "step\"");
      if (!has("step")) // PyTorch's SGD does not count; the first step is special in it
        changes.push_back({{}, members[i], "step", Tensor(int64_t(1))});
    }
  }

  /// Returns whether the member keeps its slots, with other values.
  bool loadSlots(Optimizer::State::Member &member, const std::vector<Change> &changes) {
    std::vector<std::pair<std::string, Tensor>> given;
    for (const Change &change : changes)
      if (change.member == &member && change.slot != "step")
        given.emplace_back(change.slot, detach(change.value.to(member.parameter->dtype())));
    auto slotOf = [&](const std::string &name) {
      return std::ranges::find(member.slots, name, &std::pair<std::string, Parameter>::first);
    };
    const bool isSame = given.size() == member.slots.size() && std::ranges::all_of(given, [&](const auto &entry) {
                          auto slot = slotOf(entry.first);
                          return slot != member.slots.end() && slot->second->spec() == entry.second.spec();
                        });
    if (isSame) {
      for (const auto &[name, value] : given)
        slotOf(name)->second.set(value, where);
      return true;
    }
    member.slots.clear();
    for (const auto &[name, value] : given)
      member.slots.emplace_back(name, Parameter::state(detail::following(value), name, &member.parameter));
    return false;
  }

  /// Returns whether members share counters as before, with other values.
  bool loadCounters(const std::vector<Change> &changes) {
    std::map<const Optimizer::State::Member *, int64_t> counts;
    for (const Change &change : changes)
      if (change.slot == "step" && change.member)
        counts[change.member] = change.value.item<int64_t>(where);
    std::map<int, int64_t> known; // counts by counter
    const bool isSame = std::ranges::all_of(members, [&](const auto *member) {
      auto count = counts.find(member);
      if (count == counts.end() || member->counter < 0)
        return count == counts.end() && member->counter < 0;
      return known.try_emplace(member->counter, count->second).first->second == count->second;
    });
    if (isSame) {
      for (auto [counter, count] : known)
        state.counters[size_t(counter)].set(initialValue({DType::i64, {}}, double(count), where), where);
      return true;
    }
    std::map<int64_t, int> counters; // by count
    std::vector<Parameter> cells;
    for (auto *member : members) {
      auto count = counts.find(member);
      member->counter = -1;
      if (count == counts.end())
        continue;
      auto [at, isNew] = counters.try_emplace(count->second, int(cells.size()));
      if (isNew)
        cells.push_back(scalarCell("step", double(at->first), DType::i64, where));
      member->counter = at->second;
    }
    state.counters = std::move(cells);
    return false;
  }

  [[noreturn]] void fail(const std::string &what) {
    throw Error(where, "load_state_dict",
                "the state does not fit this " + std::string(state.kind) + ": " + what +
                    "\n  nothing has been changed; build the optimiser as the saved one was");
  }

  void add(const std::string &name, const Tensor &value, std::vector<Change> &changes) {
    auto entry = EntryName::parse(name);
    if (!entry || (entry->list != "state" && entry->list != "param_groups"))
      fail("\"" + name + "\" is neither of \"state.\" nor of \"param_groups.\"");
    if (entry->list == "param_groups") {
      if (entry->index >= state.groups.size())
        fail("there is no group for \"" + name + "\"");
      auto &group = state.groups[entry->index];
      if (value.numel() != 1)
        fail("\"" + name + "\" is " + str(value.spec()) + ", but must be a number");
      if (entry->slot == "lr")
        requireRate(value.item(where), "load_state_dict", where);
      if (entry->slot == "lr")
        changes.push_back({group.lr, nullptr, {}, value});
      else if ((entry->slot == "momentum" || entry->slot == "betas.0") && group.momentum.defined())
        changes.push_back({group.momentum, nullptr, {}, value});
      return; // other options are those of the constructor
    }
    if (entry->index >= members.size())
      fail("there is no parameter for \"" + name + "\"");
    auto *member = members[entry->index];
    if (entry->slot == "step") {
      if (value.shape() != Shape{} || !isCount(value.item(where)))
        fail("\"" + name + "\" is no number of steps, but " + str(value.spec()));
      changes.push_back({{}, member, "step", value});
      return;
    }
    const auto &known = kinds[entry->index];
    const auto kind = std::ranges::find(known, entry->slot, &Optimizer::State::SlotKind::name);
    if (kind == known.end())
      fail("it keeps no \"" + entry->slot + "\" (\"" + name + "\")");
    if (value.shape() != kind->shape || !isFloat(value.dtype()))
      fail("\"" + name + "\" is " + str(value.spec()) + ", but its parameter is " + str(member->parameter->spec()) +
           (kind->shape == member->parameter->shape() ? "" : ", for which it must be " + str(kind->shape)));
    changes.push_back({{}, member, entry->slot, value.to(member->parameter->device(where), where)});
  }

  static bool isCount(double x) { return x >= 0 && x < 0x1p53 && x == std::floor(x); }
};

} // namespace

void Optimizer::load_state_dict(const StateDict &given, Location where) {
  const Location place = inScope(where);
  LocationScope scope(place);
  NoGrad noGrad;
  Loader(*state, place).load(given);
}

} // namespace burin::optim
