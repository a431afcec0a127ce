"""Classical models, which sweep.py compiles besides its exports: estimators of scikit-learn and LightGBM, fitted to the
small data sets that scikit-learn contains, as skl2onnx and onnxmltools export them, for any number of rows."""
import numpy

from . import comparison

PREFIX = "classical/"
ROWS = (1, 7, 100)
TOLERANCE = 1e-4


def scaled(estimator):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    return make_pipeline(StandardScaler(), estimator)


def estimators():
    """Returns {name: (estimator, features, targets)}."""
    from sklearn import cluster, datasets, decomposition, ensemble, feature_selection, gaussian_process, impute
    from sklearn import linear_model, multiclass, naive_bayes, neighbors, neural_network, preprocessing, svm, tree
    from sklearn.pipeline import make_pipeline
    import lightgbm
    flowers, tumors = datasets.load_iris(return_X_y=True), datasets.load_breast_cancer(return_X_y=True)
    diabetes, digits = datasets.load_diabetes(return_X_y=True), datasets.load_digits(return_X_y=True)
    whole = (numpy.round(flowers[0]), flowers[1])
    two = (diabetes[0], numpy.stack([diabetes[1], -diabetes[1]], 1))
    random = {"random_state": 0}
    quiet = {"verbose": -1, **random}
    return {name: (estimator, *data) for name, estimator, data in (
        ("logistic-3", scaled(linear_model.LogisticRegression()), flowers),
        ("logistic-2", scaled(linear_model.LogisticRegression()), tumors),
        ("linear", linear_model.LinearRegression(), diabetes),
        ("linear-2-targets", linear_model.Ridge(), two),
        ("lasso", linear_model.Lasso(), diabetes),
        ("sgd", scaled(linear_model.SGDClassifier(**random)), flowers),
        ("linear-svc", svm.LinearSVC(**random), flowers),
        ("tree", tree.DecisionTreeClassifier(**random), flowers),
        ("tree-regressor", tree.DecisionTreeRegressor(**random), diabetes),
        ("tree-2-targets", tree.DecisionTreeRegressor(**random), two),
        ("forest-2", ensemble.RandomForestClassifier(100, **random), tumors),
        ("forest-10", ensemble.RandomForestClassifier(100, **random), digits),
        ("forest-regressor", ensemble.RandomForestRegressor(50, **random), diabetes),
        ("extra-trees", ensemble.ExtraTreesClassifier(20, **random), flowers),
        ("boosting-2", ensemble.GradientBoostingClassifier(n_estimators=30, **random), tumors),
        ("boosting-3", ensemble.GradientBoostingClassifier(n_estimators=30, **random), flowers),
        ("boosting-regressor", ensemble.GradientBoostingRegressor(**random), diabetes),
        ("ada-boost", ensemble.AdaBoostClassifier(n_estimators=10, **random), tumors),
        ("bagging", ensemble.BaggingClassifier(n_estimators=5, **random), flowers),
        ("isolation-forest", ensemble.IsolationForest(n_estimators=20, **random), flowers),
        ("svc-2", scaled(svm.SVC()), tumors),
        ("svc-3-probabilities", scaled(svm.SVC(probability=True, **random)), flowers),
        ("svc-10-poly", scaled(svm.SVC(kernel="poly", degree=2, probability=True, **random)), digits),
        ("svc-linear", scaled(svm.SVC(kernel="linear")), tumors),
        ("nu-svc-sigmoid", scaled(svm.NuSVC(kernel="sigmoid")), flowers),
        ("svr", scaled(svm.SVR()), diabetes),
        ("nu-svr-poly", svm.NuSVR(kernel="poly"), diabetes),
        ("one-class-svm", svm.OneClassSVM(), flowers),
        ("neighbors", neighbors.KNeighborsClassifier(), flowers),
        ("neighbors-regressor", neighbors.KNeighborsRegressor(), diabetes),
        ("gaussian-bayes", naive_bayes.GaussianNB(), flowers),
        ("multinomial-bayes", naive_bayes.MultinomialNB(), flowers),
        ("bernoulli-bayes", make_pipeline(preprocessing.Binarizer(threshold=3.0), naive_bayes.BernoulliNB()), flowers),
        ("k-means", cluster.KMeans(3, **random), flowers),
        ("perceptron", make_pipeline(preprocessing.MinMaxScaler(), decomposition.PCA(3),
                                     neural_network.MLPClassifier(max_iter=50, **random)), tumors),
        ("perceptron-regressor", neural_network.MLPRegressor(max_iter=20, **random), diabetes),
        ("imputer", make_pipeline(impute.SimpleImputer(), preprocessing.Normalizer(), tree.DecisionTreeClassifier(**random)),
         tumors),
        ("polynomial", make_pipeline(preprocessing.PolynomialFeatures(2), linear_model.Ridge()), diabetes),
        ("one-hot", make_pipeline(preprocessing.OneHotEncoder(handle_unknown="ignore"), linear_model.LogisticRegression()),
         whole),
        ("ordinal", make_pipeline(preprocessing.OrdinalEncoder(), tree.DecisionTreeClassifier(**random)), whole),
        ("robust-scaler", preprocessing.RobustScaler(), diabetes),
        ("power-transformer", preprocessing.PowerTransformer(), diabetes),
        ("select-best", make_pipeline(feature_selection.SelectKBest(k=2), linear_model.Ridge()), diabetes),
        ("one-vs-rest", multiclass.OneVsRestClassifier(scaled(linear_model.LogisticRegression())), flowers),
        ("gaussian-process", gaussian_process.GaussianProcessRegressor(), (diabetes[0][:50], diabetes[1][:50])),
        ("lightgbm-2", lightgbm.LGBMClassifier(n_estimators=30, **quiet), tumors),
        ("lightgbm-3", lightgbm.LGBMClassifier(n_estimators=20, **quiet), flowers),
        ("lightgbm-regressor", lightgbm.LGBMRegressor(n_estimators=50, **quiet), diabetes),
    )}


def names():
    return [PREFIX + name for name in estimators()]


def exported(estimator, features):
    if type(estimator).__module__.startswith("lightgbm"):
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType
        return onnxmltools.convert_lightgbm(estimator, initial_types=[("X", FloatTensorType([None, features.shape[1]]))],
                                            zipmap=False, target_opset=15)
    import skl2onnx
    from sklearn.base import is_classifier
    givesMaps = is_classifier(estimator) and type(estimator).__name__ != "LinearSVC"
    options = {id(estimator): {"zipmap": False}} if givesMaps else None
    return skl2onnx.to_onnx(estimator, features[:1].astype(numpy.float32), options=options,
                            target_opset={"": 17, "ai.onnx.ml": 3})


def check(options, name):
    import warnings
    warnings.filterwarnings("ignore")
    estimator, features, targets = estimators()[name.removeprefix(PREFIX)]
    onnx = options.data / name / "file.onnx"
    try:
        onnx.write_bytes(exported(estimator.fit(features, targets), features).SerializeToString())
    except Exception as problem:
        return "export", f"{type(problem).__name__}: {problem}"
    inputs = {f"{rows} rows": {"X": features[-rows:].astype(numpy.float32)} for rows in ROWS}
    return comparison.compileAndCompare(options, onnx, inputs, comparison.Rule(TOLERANCE), onnx.with_suffix(".plate"))
