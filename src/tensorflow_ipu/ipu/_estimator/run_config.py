"""How an estimator runs: where it writes, how often, with which session."""

from __future__ import annotations

import copy
import json
import os
from typing import Any

_CADENCES = ("save_checkpoints_steps", "save_checkpoints_secs")
_DEFAULT_SECS = 600


class RunConfig:
    """Settings of an estimator; read-only, `replace` makes another."""

    def __init__(
        self,
        model_dir: str | None = None,
        tf_random_seed: int | None = None,
        save_summary_steps: int | None = 100,
        save_checkpoints_steps: int | None = None,
        save_checkpoints_secs: int | None = None,
        session_config: Any = None,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000,
        log_step_count_steps: int | None = 100,
        train_distribute: Any = None,
        device_fn: Any = None,
        protocol: str | None = None,
        eval_distribute: Any = None,
        experimental_distribute: Any = None,
        experimental_max_worker_delay_secs: int | None = None,
        session_creation_timeout_secs: int = 7200,
        checkpoint_save_graph_def: bool = True,
    ) -> None:
        given = dict(locals())
        del given["self"]
        if save_checkpoints_steps is not None and save_checkpoints_secs is not None:
            raise ValueError(f"Only one of {' and '.join(_CADENCES)} can be set.")
        if save_checkpoints_steps is None and save_checkpoints_secs is None:
            given["save_checkpoints_secs"] = _DEFAULT_SECS
        distribute = given.pop("experimental_distribute")
        given["train_distribute"] = train_distribute or getattr(
            distribute, "train_distribute", None
        )
        given["eval_distribute"] = eval_distribute or getattr(
            distribute, "eval_distribute", None
        )
        _check_alone()
        self._settings: dict[str, Any] = given
        self._master = ""

    def __getattr__(self, name: str) -> Any:
        settings = vars(self).get("_settings", {})
        if name.removeprefix("_") in settings:
            return settings[name.removeprefix("_")]
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    @property
    def master(self) -> str:
        """The address of the session's server; nothing for one of this process."""
        return self._master

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the checkpoints: it is the only one."""
        return True

    @property
    def task_type(self) -> str:
        """What this process does."""
        return "worker"

    @property
    def task_id(self) -> int:
        """The number of this process."""
        return 0

    def replace(self, **settings: Any) -> RunConfig:
        """The same, but for these settings."""
        unknown = sorted(set(settings) - set(self._settings))
        if unknown:
            raise ValueError(f"RunConfig has no settings {unknown}.")
        if any(settings.get(name) is not None for name in _CADENCES):
            settings = {**dict.fromkeys(_CADENCES), **settings}
        other = copy.copy(self)
        other._settings = {**self._settings, **settings}
        return other


def _check_alone() -> None:
    """Refuse a cluster in TF_CONFIG: it would be ignored."""
    cluster = json.loads(os.environ.get("TF_CONFIG") or "{}").get("cluster", {})
    if sum(len(tasks) for tasks in cluster.values()) > 1:
        raise NotImplementedError(
            "TF_CONFIG describes a cluster, and estimators run in one process. Unset"
            " it, or run several instances with `poprun`."
        )
