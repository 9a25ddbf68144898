"""Providers by name, for programs: register one, list them, build one, and read who serves the model that a string names.

Only a door: what is behind it is `themis.generation.providers`.
"""

from __future__ import annotations

from themis.generation.providers import create_provider, list_providers, parse_model, register_provider

__all__ = ["create_provider", "list_providers", "parse_model", "register_provider"]
