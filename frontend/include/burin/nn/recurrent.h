// Recurrent layers. Gates, weight layout and names in state_dict are PyTorch's.
#pragma once
#include "burin/nn/layers.h"
#include <tuple>

namespace burin::nn {

/// Options of the recurrent layers. With `batch_first` the batch is the first dimension of x, not of the states.
struct RecurrentOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0; ///< in training, for the outputs of all layers except the last
  bool bidirectional = false;
  std::string nonlinearity = "tanh"; ///< of RNN: "tanh" or "relu"
};

/// Base of the recurrent layers. With D directions and H hidden values:
///
/// x is [T, N, in], [N, T, in] with batch_first, or [T, in] without a batch; states are [layers · D, N, H] (or without
/// N), zeros by default. The output has D · H values per step. The length may be symbolic in a trace: the steps are a
/// loop of the graph (see scan).
///
/// `lengths` [N], integers: the number of valid steps of each sequence. Later outputs are 0, the final states are those
/// of the last valid step, and the reverse direction starts there, as for packed sequences of PyTorch.
struct BURIN_API RecurrentBase : Module {
  /// Weights of a layer and direction: weight_ih [gates · H, in], weight_hh [gates · H, H], bias_ih and bias_hh [gates
  /// · H]; named weight_ih_l0, …, weight_ih_l0_reverse, ….
  struct Weights {
    Parameter weight_ih, weight_hh, bias_ih, bias_hh;
  };
  std::vector<Weights> weights; // layer by layer, the forward direction first
  int64_t input_size, hidden_size;
  RecurrentOptions options;

protected:
  /// `gates`: 1, 3 (GRU) or 4 (LSTM).
  RecurrentBase(const char *kind, int64_t gates, int64_t input_size, int64_t hidden_size, RecurrentOptions options,
                const Location &where);
  /// Returns the output, followed by the final states.
  std::vector<Tensor> run(const Tensor &x, const std::vector<std::optional<Tensor>> &states,
                          const std::optional<Tensor> &lengths, const Location &where) const;

private:
  std::vector<Weights> makeWeights(const Location &where);
  int64_t gates;
};

/// h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu. Source: torch.nn.RNN.
struct BURIN_API RNN : RecurrentBase {
  RNN(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {}, Location where = Location::current());
  /// The output and the final hidden states.
  std::pair<Tensor, Tensor> operator()(const Tensor &x, const std::optional<Tensor> &hidden = std::nullopt,
                                       const std::optional<Tensor> &lengths = std::nullopt,
                                       Location where = Location::current()) const;
};
/// Gated recurrent units (reset, update, new). Source: Cho et al. 2014, torch.nn.GRU.
struct BURIN_API GRU : RecurrentBase {
  GRU(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {}, Location where = Location::current());
  /// The output and the final hidden states.
  std::pair<Tensor, Tensor> operator()(const Tensor &x, const std::optional<Tensor> &hidden = std::nullopt,
                                       const std::optional<Tensor> &lengths = std::nullopt,
                                       Location where = Location::current()) const;
};
/// The hidden and the cell state of an LSTM: {h, c}, or a pair.
struct LSTMState {
  LSTMState(Tensor hidden, Tensor cell) : hidden(std::move(hidden)), cell(std::move(cell)) {}
  LSTMState(const std::pair<Tensor, Tensor> &both) : hidden(both.first), cell(both.second) {}
  Tensor hidden, cell;
};

/// Long short-term memory (input, forget, cell, output). Source: Hochreiter and Schmidhuber 1997, torch.nn.LSTM.
struct BURIN_API LSTM : RecurrentBase {
  LSTM(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {}, Location where = Location::current());
  /// The output, the final hidden states and the final cell states.
  std::tuple<Tensor, Tensor, Tensor> operator()(const Tensor &x, const std::optional<Tensor> &hidden = std::nullopt,
                                                const std::optional<Tensor> &cell = std::nullopt,
                                                const std::optional<Tensor> &lengths = std::nullopt,
                                                Location where = Location::current()) const;
  /// The same for lstm(x, {h, c}).
  std::tuple<Tensor, Tensor, Tensor> operator()(const Tensor &x, const LSTMState &state,
                                                Location where = Location::current()) const {
    return (*this)(x, state.hidden, state.cell, std::nullopt, where);
  }
};

/// One step of a recurrent layer: weight_ih [gates · H, in], weight_hh [gates · H, H], bias_ih and bias_hh [gates · H].
struct BURIN_API RecurrentCellBase : Module {
  Parameter weight_ih, weight_hh, bias_ih, bias_hh;
  int64_t input_size, hidden_size;

protected:
  RecurrentCellBase(const char *kind, int64_t gates, int64_t input_size, int64_t hidden_size, bool bias,
                    const Location &where);
  /// Returns the states after a step with x [N, in] or [in].
  std::vector<Tensor> step(const Tensor &x, const std::vector<std::optional<Tensor>> &states,
                           const Location &where) const;
  std::string nonlinearity = "tanh";
};
/// Source: torch.nn.RNNCell.
struct BURIN_API RNNCell : RecurrentCellBase {
  RNNCell(int64_t input_size, int64_t hidden_size, bool bias = true, std::string nonlinearity = "tanh",
          Location where = Location::current());
  Tensor operator()(const Tensor &x, const std::optional<Tensor> &hidden = std::nullopt,
                    Location where = Location::current()) const;
};
/// Source: torch.nn.GRUCell.
struct BURIN_API GRUCell : RecurrentCellBase {
  GRUCell(int64_t input_size, int64_t hidden_size, bool bias = true, Location where = Location::current());
  Tensor operator()(const Tensor &x, const std::optional<Tensor> &hidden = std::nullopt,
                    Location where = Location::current()) const;
};
/// Source: torch.nn.LSTMCell.
struct BURIN_API LSTMCell : RecurrentCellBase {
  LSTMCell(int64_t input_size, int64_t hidden_size, bool bias = true, Location where = Location::current());
  /// The hidden and the cell state.
  std::pair<Tensor, Tensor> operator()(const Tensor &x, const std::optional<Tensor> &hidden = std::nullopt,
                                       const std::optional<Tensor> &cell = std::nullopt,
                                       Location where = Location::current()) const;
  /// The same for cell(x, {h, c}).
  std::pair<Tensor, Tensor> operator()(const Tensor &x, const LSTMState &state,
                                       Location where = Location::current()) const {
    return (*this)(x, state.hidden, state.cell, where);
  }
};

} // namespace burin::nn
