"""The cases of ops of the domain ai.onnx.ml: see generate.py."""
import numpy as np
from onnx import numpy_helper

DOMAIN = "ai.onnx.ml"
random = np.random.default_rng(11)
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]


def rows(count, features, missing=False):
    """Numbers with one digit, of which some equal a threshold; some are missing."""
    x = np.round(random.standard_normal((count, features)), 1).astype(np.float32)
    if missing:
        x[random.random(x.shape) < 0.2] = np.nan
    return x


def listOf(array):
    return [float(f"{v:.4g}") for v in np.ravel(array)]


class Trees:
    """Random trees as the attributes of TreeEnsembleRegressor and TreeEnsembleClassifier."""

    def __init__(self, prefix, count, modes, features=4, depth=3, targets=1, perTree=None, votes=None, missing=False,
                 lowest=-1.0):
        self.attributes = {f"nodes_{name}": [] for name in ("treeids", "nodeids", "featureids", "modes", "values",
                                                            "truenodeids", "falsenodeids")}
        self.attributes |= {f"{prefix}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
        self.modes, self.features, self.prefix, self.missing, self.lowest = modes, features, prefix, missing, lowest
        if missing:
            self.attributes["nodes_missing_value_tracks_true"] = []
        for tree in range(count):
            self.nodes = 0
            self.grow(tree, depth, [tree % targets] if perTree else votes or list(range(targets)))

    def grow(self, tree, depth, targets):
        number, self.nodes = self.nodes, self.nodes + 1
        isLeaf = depth == 0 or (number and random.random() < 0.2)
        mine = {"treeids": tree, "nodeids": number, "featureids": int(random.integers(self.features)),
                "modes": "LEAF" if isLeaf else str(random.choice(self.modes)),
                "values": float(np.round(random.standard_normal(), 1)), "truenodeids": 0, "falsenodeids": 0}
        if self.missing:
            mine["missing_value_tracks_true"] = int(random.integers(2))
        for name, value in mine.items():
            self.attributes["nodes_" + name].append(value)
        if isLeaf:
            for target in targets if not callable(targets) else targets():
                vote = {"treeids": tree, "nodeids": number, "ids": int(target),
                        "weights": float(np.round(random.uniform(self.lowest, 1), 3))}
                for name, value in vote.items():
                    self.attributes[f"{self.prefix}_{name}"].append(value)
            return number
        place = len(self.attributes["nodes_modes"]) - 1
        self.attributes["nodes_truenodeids"][place] = self.grow(tree, depth - 1, targets)
        self.attributes["nodes_falsenodeids"][place] = self.grow(tree, depth - 1, targets)
        return number


def regressors(case):
    def one(name, trees, x, **attributes):
        return case("TreeEnsembleRegressor", [x], domain=DOMAIN, name=f"TreeEnsembleRegressor, {name}",
                    **trees.attributes, **attributes)
    for mode in MODES:
        yield one(mode, Trees("target", 3, [mode], missing=True), rows(9, 4, True), n_targets=1)
    yield one("all modes", Trees("target", 5, MODES), rows(9, 4), n_targets=1, base_values=[0.25])
    yield one("f64", Trees("target", 5, MODES), rows(9, 4).astype(np.float64), n_targets=1)
    for function in ("SUM", "AVERAGE", "MIN", "MAX"):
        yield one(function, Trees("target", 4, MODES), rows(9, 4), n_targets=1, aggregate_function=function)
        yield one(f"{function} of three", Trees("target", 4, MODES, targets=3), rows(9, 4), n_targets=3,
                  aggregate_function=function, base_values=[0.5, -0.25, 0.125])
        yield one(f"{function} by tree", Trees("target", 6, MODES, targets=3, perTree=True), rows(9, 4), n_targets=3,
                  aggregate_function=function)
    for transform in ("SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        yield one(transform, Trees("target", 4, MODES, targets=3, votes=[0, 2]), rows(9, 4), n_targets=3,
                  post_transform=transform)
    yield one("one leaf", Trees("target", 2, MODES, depth=0), rows(3, 4), n_targets=1)


def classifiers(case):
    def one(name, trees, x, **attributes):
        return case("TreeEnsembleClassifier", [x], ("label", "scores"), domain=DOMAIN,
                    name=f"TreeEnsembleClassifier, {name}", **trees.attributes, **attributes)
    two, three = {"classlabels_int64s": [7, 3]}, {"classlabels_int64s": [4, -2, 9]}
    for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
        for lowest in (0.0, -1.0):
            yield one(f"one of two, from {lowest}, {transform}", Trees("class", 1, MODES, lowest=lowest), rows(9, 4),
                      post_transform=transform, **two)
        yield one(f"three, {transform}", Trees("class", 4, MODES, targets=3), rows(9, 4), post_transform=transform, **three)
    yield one("one of two with a base", Trees("class", 3, MODES), rows(9, 4), base_values=[0.125], **two)
    yield one("three by tree", Trees("class", 6, MODES, targets=3, perTree=True), rows(9, 4), **three)
    yield one("three with a base", Trees("class", 3, MODES, targets=3), rows(9, 4), base_values=[0.5, 0.0, -0.25], **three)
    some = lambda: random.choice(3, int(random.integers(1, 3)), replace=False)
    yield one("three with votes for some", Trees("class", 2, MODES, votes=some, depth=2), rows(17, 4), **three)
    yield one("strings", Trees("class", 4, MODES, targets=3), rows(9, 4), classlabels_strings=["red", "green", "blue"])
    yield one("missing values", Trees("class", 4, MODES, targets=3, missing=True), rows(17, 4, True), **three)


def ensembles(case):
    """Two trees: one tests a number for membership, the other is a leaf."""
    numbers = lambda values, dtype: numpy_helper.from_array(np.array(values, dtype))
    for dtype in (np.float32, np.float64):
        for aggregate in range(4):
            yield case("TreeEnsemble", [np.round(random.uniform(0, 4, (12, 2))).astype(dtype)], domain=DOMAIN, version=5,
                       name=f"TreeEnsemble of {np.dtype(dtype).name}, aggregate {aggregate}", n_targets=2,
                       aggregate_function=aggregate, post_transform=0, tree_roots=[0, 2],
                       nodes_modes=numbers([0, 6, 2], np.uint8), nodes_splits=numbers([2, 0, 1.5], dtype),
                       nodes_featureids=[0, 1, 1], nodes_truenodeids=[1, 0, 1], nodes_falsenodeids=[2, 3, 4],
                       nodes_trueleafs=[0, 1, 1], nodes_falseleafs=[1, 1, 1],
                       membership_values=numbers([1, 3, 4, np.nan], dtype),
                       leaf_targetids=[0, 1, 0, 1, 1], leaf_weights=numbers([5.25, -12, 1000, 0.5, 2], dtype))


def linear(case):
    x, labels = rows(7, 4), {"classlabels_ints": [3, 8]}
    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        for count in (1, 3):
            yield case("LinearRegressor", [x], domain=DOMAIN, name=f"LinearRegressor, {count}, {transform}", targets=count,
                       coefficients=listOf(rows(count, 4)), intercepts=listOf(rows(1, count)), post_transform=transform)
        yield case("LinearClassifier", [x], ("label", "scores"), domain=DOMAIN, name=f"LinearClassifier, 3, {transform}",
                   coefficients=listOf(rows(3, 4)), intercepts=listOf(rows(1, 3)), post_transform=transform,
                   classlabels_ints=[5, 1, 9])
    for transform in ("NONE", "LOGISTIC"):
        yield case("LinearClassifier", [x], ("label", "scores"), domain=DOMAIN, name=f"LinearClassifier, 1 of 2, {transform}",
                   coefficients=listOf(rows(1, 4)), intercepts=[0.1], post_transform=transform, **labels)
    yield case("LinearClassifier", [x.astype(np.float64)], ("label", "scores"), domain=DOMAIN, intercepts=[0.1],
               name="LinearClassifier of f64 with strings", coefficients=listOf(rows(1, 4)), classlabels_strings=["no", "yes"])


def machines(case):
    x = rows(7, 3)
    for kind in ("LINEAR", "RBF", "POLY", "SIGMOID"):
        kernel = {"kernel_type": kind, "kernel_params": [0.5, 0.25, 3.0]}
        vectors = {"support_vectors": listOf(rows(6, 3)), "coefficients": listOf(rows(1, 6))}
        yield case("SVMRegressor", [x], domain=DOMAIN, name=f"SVMRegressor, {kind}", n_supports=6, rho=[0.3], **vectors,
                   **kernel)
        yield case("SVMRegressor", [x], domain=DOMAIN, name=f"SVMRegressor, {kind}, one class", n_supports=6, rho=[-0.1],
                   one_class=1, **vectors, **kernel)
        for counts in ([3, 2], [2, 3, 1], [2, 1, 2, 1]):
            classes, pairs = len(counts), len(counts) * (len(counts) - 1) // 2
            given = {"support_vectors": listOf(rows(sum(counts), 3)), "rho": listOf(rows(1, pairs)),
                     "coefficients": listOf(rows(classes - 1, sum(counts))), "vectors_per_class": counts,
                     "classlabels_ints": [3, 1, 7, 5][:classes], **kernel}
            yield case("SVMClassifier", [x], ("label", "scores"), domain=DOMAIN, name=f"SVMClassifier, {kind}, {classes}",
                       **given)
            yield case("SVMClassifier", [x], ("label", "scores"), domain=DOMAIN, tolerance=1e-4,
                       name=f"SVMClassifier, {kind}, {classes}, probabilities", prob_a=listOf(-np.abs(rows(1, pairs)) - 0.5),
                       prob_b=listOf(rows(1, pairs)), **given)


def features(case):
    x = rows(5, 4)
    yield case("ArrayFeatureExtractor", [x, np.array([[3, 0, 3]])], domain=DOMAIN)
    yield case("ArrayFeatureExtractor", [np.arange(5), np.array([1, 4])], domain=DOMAIN, name="ArrayFeatureExtractor of a vector")
    yield case("Binarizer", [x], domain=DOMAIN, threshold=0.5)
    yield case("FeatureVectorizer", [x, rows(5, 2)], domain=DOMAIN, inputdimensions=[4, 2])
    yield case("FeatureVectorizer", [random.integers(0, 9, (5, 3))], domain=DOMAIN, inputdimensions=[3],
               name="FeatureVectorizer of integers")
    yield case("Imputer", [rows(5, 4, True)], domain=DOMAIN, imputed_value_floats=[1.5, 2.5, 3.5, 4.5],
               replaced_value_float=float("nan"))
    yield case("Imputer", [random.integers(0, 3, (5, 4))], domain=DOMAIN, imputed_value_int64s=[7], replaced_value_int64=2,
               name="Imputer of integers")
    for norm in ("MAX", "L1", "L2"):
        yield case("Normalizer", [np.concatenate([np.abs(x), 0 * x[:1]])], domain=DOMAIN, norm=norm, name=f"Normalizer, {norm}")
    yield case("Normalizer", [x], domain=DOMAIN, norm="L2", name="Normalizer of negative numbers")
    yield case("Scaler", [x], domain=DOMAIN, offset=listOf(rows(1, 4)), scale=listOf(rows(1, 4)))
    yield case("Scaler", [random.integers(0, 9, (5, 4))], domain=DOMAIN, offset=[0.5], scale=[2.5], name="Scaler of integers")
    yield case("OneHotEncoder", [random.integers(0, 5, (5, 2))], domain=DOMAIN, cats_int64s=[4, 1, 2], zeros=1)
    yield case("OneHotEncoder", [random.integers(0, 2, (5, 1)).astype(np.float32)], domain=DOMAIN, cats_int64s=[0, 1], zeros=0,
               name="OneHotEncoder of known floats")
    yield case("LabelEncoder", [random.integers(0, 5, (5, 2))], domain=DOMAIN, keys_int64s=[3, 1, 0], values_floats=[0.5, 1.5, 2.5],
               default_float=-7.5)
    yield case("LabelEncoder", [np.array([1.5, np.nan, 2, 9], np.float32)], domain=DOMAIN, keys_floats=[2.0, float("nan"), 1.5],
               values_int64s=[10, 20, 30], version=4, name="LabelEncoder of floats")
    yield case("ZipMap", [x], domain=DOMAIN, classlabels_int64s=[3, 1, 4, 2])


def cases(case):
    for family in (regressors, classifiers, ensembles, linear, machines, features):
        yield from family(case)
