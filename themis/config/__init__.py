"""The files that users write: their shapes, and reading them with errors that name the place."""

from themis.config.loading import load_memory_config, parse_memory_config, shipped_configurations
from themis.config.schema import HuggingFaceHubConfig, MemoryConfig, MemoryTestConfig

__all__ = [
    "HuggingFaceHubConfig",
    "MemoryConfig",
    "MemoryTestConfig",
    "load_memory_config",
    "parse_memory_config",
    "shipped_configurations",
]
