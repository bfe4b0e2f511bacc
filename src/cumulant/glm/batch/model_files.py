"""Files of fitted generalised linear models: settings, weights, certificate, and the state of a stream."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from cumulant import files
from cumulant.certificates import Certificate
from cumulant.errors import FileFormatError
from cumulant.families import ExponentialFamily
from cumulant.families.saving import describe, restore
from cumulant.glm.batch.streaming import QuadraticSummary
from cumulant.glm.objective.losses import loss_of

_KIND = "GLM"
_ARRAYS = ("coef", "classes", "feature_names_in", "dual")
_PLAIN = ("refusal", "objective", "status", "history", "n_iter", "n_features_in")


def save_model(model: Any, path: str | os.PathLike) -> Path:
    """Write a fitted `GLM`; see `cumulant.files`."""
    settings, arrays = saved_parameters(model), {"intercept": np.asarray(model.intercept_)}
    if isinstance(model.family, ExponentialFamily):
        settings["family"], described = describe(model.family)
        arrays |= described
    fitted = {name: getattr(model, f"{name}_") for name in _PLAIN if hasattr(model, f"{name}_")}
    fitted["certificate"] = None if model.certificate_ is None else model.certificate_.to_json()
    for name in _ARRAYS:
        if hasattr(model, f"{name}_") and getattr(model, f"{name}_") is not None:
            value = np.asarray(getattr(model, f"{name}_"))
            fitted[f"{name} are objects"] = value.dtype.hasobject
            arrays[name] = np.array([str(label) for label in value]) if _is_text(value) else value
    if hasattr(model, "_stream"):
        stream = model._stream
        arrays |= {"stream.x": stream.x, "stream.precision": stream.precision, "stream.batches": stream.batches}
    return files.save(path, _KIND, arrays, {"parameters": settings, "fitted": _plain(fitted)})


def load_model(cls: type, path: str | os.PathLike) -> Any:
    """The model that `save_model` wrote."""
    saved = files.load(path, _KIND)
    arrays = saved.arrays
    try:
        settings, fitted = dict(saved.settings["parameters"]), dict(saved.settings["fitted"])
        if isinstance(settings["family"], dict):
            settings["family"] = restore(settings["family"], arrays)
        model = cls(**settings)
        certificate = fitted.pop("certificate")
        model.certificate_ = None if certificate is None else Certificate.from_json(certificate)
        for name in _ARRAYS:
            if name in arrays:
                setattr(
                    model, f"{name}_", arrays[name].astype(object) if fitted[f"{name} are objects"] else arrays[name]
                )
        model.dual_ = arrays.get("dual")
        for name in _PLAIN:
            if name in fitted:
                setattr(model, f"{name}_", fitted[name])
        intercept = arrays["intercept"]
        model.intercept_ = intercept if intercept.ndim else float(intercept)
        classes = len(model.classes_) if model._is_categorical() else 0
        model._link = loss_of(model.family, np.zeros(0), classes)
        if "stream.x" in arrays:
            model._stream = QuadraticSummary(
                arrays["stream.x"], arrays["stream.precision"], int(arrays["stream.batches"])
            )
        model._check_settings()
    except (KeyError, TypeError, ValueError) as problem:
        raise FileFormatError(f"{path} does not hold a GLM of this version: {problem}") from problem
    return model


def saved_parameters(model: Any) -> dict[str, Any]:
    """The settings of an estimator that a file can keep: those that are functions or generators become None."""
    settings = _plain(model.get_params()) | {"callback": None, "checkpoint": None}
    if not isinstance(settings["random_state"], int):
        settings["random_state"] = None
    return settings


def _is_text(value: np.ndarray) -> bool:
    if value.dtype.hasobject and not all(isinstance(label, str) for label in value):
        raise TypeError("labels and names of features must be numbers or text to be saved; some are other objects")
    return value.dtype.hasobject


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
