"""Small things the tests of training share: a network that is only names, so that checkpoints are tested without cells."""

from __future__ import annotations

import numpy as np

from jumar.frontend import Parameter


class Names:
    """Named parameters."""

    def __init__(self, **shapes: tuple[int, ...]) -> None:
        self.params = [Parameter(np.zeros(s, np.float32), name=n.replace("__", ".")) for n, s in shapes.items()]

    def parameters_and_names(self) -> list[tuple[str, Parameter]]:
        return [(p.name, p) for p in self.params]
