"""The user's file of devices and operators."""

from __future__ import annotations

import logging
import os

from torch_tb_profiler.base.errors import UsageError
from torch_tb_profiler.model.catalog import EMPTY_CATALOG, Catalog

logger = logging.getLogger(__name__)


def read_devices(path: str) -> Catalog:
    """What the file says, nothing if `path` is empty. One that cannot be used is logged, and leaves a note."""
    if not path:
        return EMPTY_CATALOG
    from torch_tb_profiler.model.hardware.catalog import from_file

    name = os.path.basename(path)
    try:
        with open(path, encoding="utf-8") as file:
            return from_file(file.read(), name)
    except UsageError as error:
        problem = error.message
        logger.warning("%s (%s); it has entries such as %s", problem, path, error.hint)
    except OSError as error:
        problem = f"{name}: {error.strerror}"
        logger.warning("%s (%s)", problem, path)
    except UnicodeDecodeError as error:
        problem = f"{name}: {error}"
        logger.warning("%s (%s)", problem, path)
    return Catalog(note=f"the file of devices is left out: {problem}")
