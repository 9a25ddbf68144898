"""Runs of other systems, brought into the store."""

from themis.experiment.importing.bounded import NO_LIMITS, ReadLimits
from themis.experiment.importing.into_store import Imported, import_log
from themis.experiment.importing.published import Broken

__all__ = ["NO_LIMITS", "Broken", "Imported", "ReadLimits", "import_log"]
