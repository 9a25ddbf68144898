"""Runs of other systems, brought into the store."""

from themis.experiment.importing.into_store import Imported, import_log
from themis.experiment.importing.published import Broken

__all__ = ["Broken", "Imported", "import_log"]
