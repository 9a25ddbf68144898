"""Runs of other systems, brought into the store."""

from themis.core.bounded_reading import NO_LIMITS, Broken, ReadLimits
from themis.experiment.importing.into_store import Imported, import_log

__all__ = ["NO_LIMITS", "Broken", "Imported", "ReadLimits", "import_log"]
