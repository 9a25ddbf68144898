"""The functions of a run's manifest under the name by which programs import them."""

from themis.runs.manifest import (
    build_reproducibility_manifest,
    diff_manifests,
    manifest_hash,
    validate_reproducibility_manifest,
)

__all__ = [
    "build_reproducibility_manifest",
    "diff_manifests",
    "manifest_hash",
    "validate_reproducibility_manifest",
]
