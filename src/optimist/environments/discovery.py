"""Registers our environments when Gymnasium is imported, whoever imports it.

Gymnasium before 1.0 looked for installed environments by itself, through entry points; since then an
environment can only be made after its package was imported. `optimist_gymnasium.pth`, installed beside the
package, imports this module when Python starts. So it must stay small and import nothing: it only waits.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

AWAITED = "gymnasium.envs"  # once it is loaded, environments can be registered


class _Waiting:
    """A finder on `sys.meta_path` that finds nothing, but sees Gymnasium come."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != AWAITED:
            return None
        from importlib.util import find_spec  # noqa: PLC0415

        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                load(module)
                _register()

            # setattr: a loader's method, replaced on this one loader
            setattr(spec.loader, "exec_module", load_and_register)  # noqa: B010
        return spec


def _register() -> None:
    try:
        from optimist.environments.registration import register  # noqa: PLC0415

        register()
    except Exception as error:  # Gymnasium must load whatever is wrong with us
        import warnings  # noqa: PLC0415

        warnings.warn(f"Optimist's environments were not registered: {error}", stacklevel=2)


if AWAITED in sys.modules:
    _register()
else:
    sys.meta_path.insert(0, _Waiting())
