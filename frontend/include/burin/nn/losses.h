// Losses. Names, options, defaults and reductions are PyTorch's (torch.nn.functional and torch.nn); the modules of
// burin::nn call the functions.
//
// Inputs are floats. Targets must have the documented shape, and are never broadcast. A mean over no elements is an
// error. All losses have gradients with respect to their inputs, and to targets that are floats.
#pragma once
#include "burin/nn/module.h"

namespace burin {

/// Reduction of the losses of all elements (or rows) to one number; None returns them unreduced. BatchMean, for kl_div
/// only, divides the sum by the size of dimension 0.
enum class Reduction { None, Mean, Sum, BatchMean };

/// Options of cross_entropy.
struct CrossEntropyOptions {
  std::optional<Tensor> weight = std::nullopt; ///< [C]: one factor per class
  int64_t ignore_index = -100;                 ///< targets to skip; not used with probabilities
  Reduction reduction = Reduction::Mean;
  double label_smoothing = 0; ///< in [0, 1]: the fraction of the target that is distributed over all classes
};
/// -log softmax(input)[target] per row. `input` are logits, [C], [N, C] or [N, C, d1, …]. `target` are either integers
/// (classes) of the shape of input without C, or probabilities (floats) of the shape of input. Mean divides by the sum
/// of the weights of the targets that are not skipped, with probabilities by the number of rows. Computed by
/// log_softmax, so large logits are safe.
///
/// A class outside of [0, C) other than ignore_index is an error, in a traced function an error of the run. An eager
/// call waits for integer targets to check them.
/// Source: torch.nn.functional.cross_entropy.
BURIN_API Tensor cross_entropy(const Tensor &input, const Tensor &target, const CrossEntropyOptions &options = {},
                               Location where = Location::current());

/// Options of nll_loss.
struct NllOptions {
  std::optional<Tensor> weight = std::nullopt; ///< [C]
  int64_t ignore_index = -100;
  Reduction reduction = Reduction::Mean;
};
/// -input[target] per row; `input` are logarithms of probabilities. Shapes, classes out of range and Mean as in
/// cross_entropy with integers. Source: torch.nn.functional.nll_loss.
BURIN_API Tensor nll_loss(const Tensor &input, const Tensor &target, const NllOptions &options = {},
                          Location where = Location::current());

/// Options of binary_cross_entropy.
struct BceOptions {
  std::optional<Tensor> weight = std::nullopt; ///< a factor per element, broadcast to the shape of input
  Reduction reduction = Reduction::Mean;
};
/// -(target · log input + (1 - target) · log(1 - input)); input and target of one shape, with elements in [0, 1]:
/// others make the run fail. Logarithms are clamped to at least -100 and slopes to at most 1e12, so that 0 and 1 are
/// safe. Source: torch.nn.functional.binary_cross_entropy.
BURIN_API Tensor binary_cross_entropy(const Tensor &input, const Tensor &target, const BceOptions &options = {},
                                      Location where = Location::current());

/// Options of binary_cross_entropy_with_logits.
struct BceWithLogitsOptions {
  std::optional<Tensor> weight = std::nullopt;     ///< a factor per element, broadcast to the shape of input
  std::optional<Tensor> pos_weight = std::nullopt; ///< a factor of the positive part, broadcast to the shape of input
  Reduction reduction = Reduction::Mean;
};
/// binary_cross_entropy of sigmoid(input), computed from the logits, so that any logit is safe.
/// Source: torch.nn.functional.binary_cross_entropy_with_logits.
BURIN_API Tensor binary_cross_entropy_with_logits(const Tensor &input, const Tensor &target,
                                                  const BceWithLogitsOptions &options = {},
                                                  Location where = Location::current());

/// (input - target)². Source: torch.nn.functional.mse_loss.
BURIN_API Tensor mse_loss(const Tensor &input, const Tensor &target, Reduction reduction = Reduction::Mean,
                          Location where = Location::current());
/// |input - target|. Source: torch.nn.functional.l1_loss.
BURIN_API Tensor l1_loss(const Tensor &input, const Tensor &target, Reduction reduction = Reduction::Mean,
                         Location where = Location::current());
/// d² / (2 beta) where d = |input - target| < beta, else d - beta / 2. Source: torch.nn.functional.smooth_l1_loss.
BURIN_API Tensor smooth_l1_loss(const Tensor &input, const Tensor &target, Reduction reduction = Reduction::Mean,
                                double beta = 1, Location where = Location::current());
/// d² / 2 where d = |input - target| <= delta, else delta · (d - delta / 2). Source: torch.nn.functional.huber_loss.
BURIN_API Tensor huber_loss(const Tensor &input, const Tensor &target, Reduction reduction = Reduction::Mean,
                            double delta = 1, Location where = Location::current());

/// target · (log target - input); `input` are logarithms, and `target`, too, with `log_target`. 0 where the target is
/// 0. Mean divides by the number of elements, BatchMean by that of rows. Source: torch.nn.functional.kl_div.
BURIN_API Tensor kl_div(const Tensor &input, const Tensor &target, Reduction reduction = Reduction::Mean,
                        bool log_target = false, Location where = Location::current());

/// 1 - cos(input1, input2) where the target is 1, max(0, cos - margin) where it is -1. Inputs [N, D] and targets [N],
/// or [D] and []. Source: torch.nn.functional.cosine_embedding_loss.
BURIN_API Tensor cosine_embedding_loss(const Tensor &input1, const Tensor &input2, const Tensor &target,
                                       double margin = 0, Reduction reduction = Reduction::Mean,
                                       Location where = Location::current());

/// Options of triplet_margin_loss.
struct TripletMarginOptions {
  double margin = 1;
  double p = 2;      ///< of the norm that is the distance
  double eps = 1e-6; ///< added to each difference
  bool swap = false; ///< use the distance of positive and negative if it is smaller than that of anchor and negative
  Reduction reduction = Reduction::Mean;
};
/// max(0, |anchor - positive| - |anchor - negative| + margin) over the last dimension; three tensors of one shape
/// [N, D] or [D]. Source: torch.nn.functional.triplet_margin_loss.
BURIN_API Tensor triplet_margin_loss(const Tensor &anchor, const Tensor &positive, const Tensor &negative,
                                     const TripletMarginOptions &options = {}, Location where = Location::current());

/// Options of ctc_loss.
struct CtcOptions {
  int64_t blank = 0;
  /// Mean divides each loss by the length of its target (at least 1) first.
  Reduction reduction = Reduction::Mean;
  bool zero_infinity = false; ///< 0 instead of infinity for targets that are too long for their inputs
};
/// Connectionist temporal classification: -log of the sum over all alignments of `targets` with the input. log_probs
/// [T, N, C]; targets [N, S] integers, with any padding; input_lengths [N] and target_lengths [N] integers, of at most
/// T and S; others are errors, in a traced function of the run. Infinite, with gradient 0, if a target is too long for
/// its input.
/// Source: Graves et al. 2006, torch.nn.functional.ctc_loss.
BURIN_API Tensor ctc_loss(const Tensor &log_probs, const Tensor &targets, const Tensor &input_lengths,
                          const Tensor &target_lengths, const CtcOptions &options = {},
                          Location where = Location::current());

/// Options of gaussian_nll_loss.
struct GaussianNllOptions {
  bool full = false; ///< add the constant log(2 pi) / 2
  double eps = 1e-6; ///< the least variance; its gradient ignores this limit
  Reduction reduction = Reduction::Mean;
};
/// (log var + (input - target)² / var) / 2, for predicted means and variances. `var` has the shape of input, or a last
/// dimension of 1, or none. Source: Nix, Weigend 1994, torch.nn.functional.gaussian_nll_loss.
BURIN_API Tensor gaussian_nll_loss(const Tensor &input, const Tensor &target, const Tensor &var,
                                   const GaussianNllOptions &options = {}, Location where = Location::current());
/// Options of poisson_nll_loss.
struct PoissonNllOptions {
  bool log_input = true; ///< whether input is the logarithm of the mean
  bool full = false;     ///< add Stirling's approximation of log target! for targets above 1
  double eps = 1e-8;     ///< added to means before their logarithm
  Reduction reduction = Reduction::Mean;
};
/// exp(input) - target · input, or input - target · log(input + eps) without log_input. Source:
/// torch.nn.functional.poisson_nll_loss.
BURIN_API Tensor poisson_nll_loss(const Tensor &input, const Tensor &target, const PoissonNllOptions &options = {},
                                  Location where = Location::current());
/// input where the target is 1, max(0, margin - input) where it is -1. Source:
/// torch.nn.functional.hinge_embedding_loss.
BURIN_API Tensor hinge_embedding_loss(const Tensor &input, const Tensor &target, double margin = 1,
                                      Reduction reduction = Reduction::Mean, Location where = Location::current());
/// max(0, margin - target · (input1 - input2)); the target is 1 where input1 should be the larger one, else -1. Source:
/// torch.nn.functional.margin_ranking_loss.
BURIN_API Tensor margin_ranking_loss(const Tensor &input1, const Tensor &input2, const Tensor &target,
                                     double margin = 0, Reduction reduction = Reduction::Mean,
                                     Location where = Location::current());
/// log(1 + exp(-target · input)); targets are 1 and -1. Source: torch.nn.functional.soft_margin_loss.
BURIN_API Tensor soft_margin_loss(const Tensor &input, const Tensor &target, Reduction reduction = Reduction::Mean,
                                  Location where = Location::current());
/// The mean over the classes, the last dimension, of binary_cross_entropy_with_logits; `weight` [C] has one factor per
/// class. Source: torch.nn.functional.multilabel_soft_margin_loss.
BURIN_API Tensor multilabel_soft_margin_loss(const Tensor &input, const Tensor &target,
                                             const std::optional<Tensor> &weight = std::nullopt,
                                             Reduction reduction = Reduction::Mean,
                                             Location where = Location::current());
/// Options of multi_margin_loss.
struct MultiMarginOptions {
  int64_t p = 1; ///< 1 or 2
  double margin = 1;
  std::optional<Tensor> weight = std::nullopt; ///< [C]: one factor per class
  Reduction reduction = Reduction::Mean;
};
/// The sum over classes c other than the target of max(0, margin - input[target] + input[c])^p, divided by the number
/// of classes. Input [N, C] or [C], targets [N] or []. Source: torch.nn.functional.multi_margin_loss.
BURIN_API Tensor multi_margin_loss(const Tensor &input, const Tensor &target, const MultiMarginOptions &options = {},
                                   Location where = Location::current());
/// The sum over classes t of the target and classes c not of it of max(0, 1 - input[t] + input[c]), divided by the
/// number of classes. Input and target [N, C] or [C]; the classes of a row end before the first negative number.
/// Source: torch.nn.functional.multilabel_margin_loss.
BURIN_API Tensor multilabel_margin_loss(const Tensor &input, const Tensor &target,
                                        Reduction reduction = Reduction::Mean, Location where = Location::current());

namespace nn {

/// cross_entropy; a weight becomes the buffer `weight`.
struct BURIN_API CrossEntropyLoss : Module {
  explicit CrossEntropyLoss(CrossEntropyOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Parameter weight;
  CrossEntropyOptions options;
};
/// nll_loss; a weight becomes the buffer `weight`.
struct BURIN_API NLLLoss : Module {
  explicit NLLLoss(NllOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Parameter weight;
  NllOptions options;
};
/// binary_cross_entropy; a weight becomes the buffer `weight`.
struct BURIN_API BCELoss : Module {
  explicit BCELoss(BceOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Parameter weight;
  BceOptions options;
};
/// binary_cross_entropy_with_logits; weights become the buffers `weight` and `pos_weight`.
struct BURIN_API BCEWithLogitsLoss : Module {
  explicit BCEWithLogitsLoss(BceWithLogitsOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Parameter weight, pos_weight;
  BceWithLogitsOptions options;
};
/// mse_loss as a module.
struct BURIN_API MSELoss : Module {
  explicit MSELoss(Reduction reduction = Reduction::Mean, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Reduction reduction;
};
/// l1_loss as a module.
struct BURIN_API L1Loss : Module {
  explicit L1Loss(Reduction reduction = Reduction::Mean, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Reduction reduction;
};
/// smooth_l1_loss as a module.
struct BURIN_API SmoothL1Loss : Module {
  explicit SmoothL1Loss(Reduction reduction = Reduction::Mean, double beta = 1, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Reduction reduction;
  double beta;
};
/// huber_loss as a module.
struct BURIN_API HuberLoss : Module {
  explicit HuberLoss(Reduction reduction = Reduction::Mean, double delta = 1, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Reduction reduction;
  double delta;
};
/// kl_div as a module.
struct BURIN_API KLDivLoss : Module {
  explicit KLDivLoss(Reduction reduction = Reduction::Mean, bool log_target = false,
                     Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Reduction reduction;
  bool log_target;
};
/// cosine_embedding_loss as a module.
struct BURIN_API CosineEmbeddingLoss : Module {
  explicit CosineEmbeddingLoss(double margin = 0, Reduction reduction = Reduction::Mean,
                               Location where = Location::current());
  Tensor operator()(const Tensor &input1, const Tensor &input2, const Tensor &target,
                    Location where = Location::current()) const;
  double margin;
  Reduction reduction;
};
/// triplet_margin_loss as a module.
struct BURIN_API TripletMarginLoss : Module {
  explicit TripletMarginLoss(TripletMarginOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &anchor, const Tensor &positive, const Tensor &negative,
                    Location where = Location::current()) const;
  TripletMarginOptions options;
};
/// ctc_loss as a module.
struct BURIN_API CTCLoss : Module {
  explicit CTCLoss(CtcOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &log_probs, const Tensor &targets, const Tensor &input_lengths,
                    const Tensor &target_lengths, Location where = Location::current()) const;
  CtcOptions options;
};
/// gaussian_nll_loss as a module.
struct BURIN_API GaussianNLLLoss : Module {
  explicit GaussianNLLLoss(GaussianNllOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, const Tensor &var,
                    Location where = Location::current()) const;
  GaussianNllOptions options;
};
/// poisson_nll_loss as a module.
struct BURIN_API PoissonNLLLoss : Module {
  explicit PoissonNLLLoss(PoissonNllOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  PoissonNllOptions options;
};
/// hinge_embedding_loss as a module.
struct BURIN_API HingeEmbeddingLoss : Module {
  explicit HingeEmbeddingLoss(double margin = 1, Reduction reduction = Reduction::Mean,
                              Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  double margin;
  Reduction reduction;
};
/// margin_ranking_loss as a module.
struct BURIN_API MarginRankingLoss : Module {
  explicit MarginRankingLoss(double margin = 0, Reduction reduction = Reduction::Mean,
                             Location where = Location::current());
  Tensor operator()(const Tensor &input1, const Tensor &input2, const Tensor &target,
                    Location where = Location::current()) const;
  double margin;
  Reduction reduction;
};
/// soft_margin_loss as a module.
struct BURIN_API SoftMarginLoss : Module {
  explicit SoftMarginLoss(Reduction reduction = Reduction::Mean, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Reduction reduction;
};
/// multilabel_soft_margin_loss; a weight becomes the buffer `weight`.
struct BURIN_API MultiLabelSoftMarginLoss : Module {
  explicit MultiLabelSoftMarginLoss(std::optional<Tensor> weight = std::nullopt, Reduction reduction = Reduction::Mean,
                                    Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Parameter weight;
  Reduction reduction;
};
/// multi_margin_loss; a weight becomes the buffer `weight`.
struct BURIN_API MultiMarginLoss : Module {
  explicit MultiMarginLoss(MultiMarginOptions options = {}, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Parameter weight;
  MultiMarginOptions options;
};
/// multilabel_margin_loss as a module.
struct BURIN_API MultiLabelMarginLoss : Module {
  explicit MultiLabelMarginLoss(Reduction reduction = Reduction::Mean, Location where = Location::current());
  Tensor operator()(const Tensor &input, const Tensor &target, Location where = Location::current()) const;
  Reduction reduction;
};

} // namespace nn
} // namespace burin
