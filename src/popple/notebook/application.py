"""The interface of an application that notebooks use, and the end of every notebook.

A notebook lets its reader do four things with a model: use another checkpoint, use
other data, save what was trained, and find out how good it is. An application that has
these methods can be shown in any notebook; nothing has to be inherited.

    application = Digits()                      # yours
    application.change_checkpoint("digits.pt")
    application.change_dataset(my_images)
    print(application.evaluate())               # {"accuracy": 0.97}
    application.save_checkpoint("mine.pt")
    application.close()
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Protocol, TypeAlias, runtime_checkable

AnyPath: TypeAlias = str | PathLike[str]


@runtime_checkable
class Application(Protocol):
    """What a notebook's reader can do with a model.

    `isinstance(mine, Application)` says whether an object has all of it.
    """

    def change_checkpoint(self, checkpoint: AnyPath) -> None:
        """Continue with the weights of a file, or of a name the application knows."""
        ...

    def change_dataset(self, dataset: Any) -> None:
        """Continue with other data; the application documents their format."""
        ...

    def save_checkpoint(self, path: AnyPath) -> None:
        """Write the present weights so that `change_checkpoint` takes them."""
        ...

    def evaluate(self) -> Mapping[str, float]:
        """Run the model over the evaluation data; metrics by name."""
        ...

    def close(self) -> None:
        """Give the devices back; a second time changes nothing."""
        ...


def release_devices(*models: Any) -> None:
    """Detach PopTorch models that are attached; call it in a notebook's last cell.

    A notebook's kernel lives on after its last cell, and would hold its IPUs. Programs
    of TensorFlow call `ipu.config.reset_ipu_configuration()` instead.
    """
    for model in models:
        if model.isAttachedToDevice():
            model.detachFromDevice()
