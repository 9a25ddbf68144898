"""Asks a model to invent the material of a test."""

from __future__ import annotations

from themis.memory.models import ChatModel, Completion

__all__ = ["ask_model"]

_MAX_TOKENS = 2_048


def ask_model(prompt: str, model: str, temperature: float) -> Completion:
    asked = ChatModel(model, temperature=temperature, max_tokens=_MAX_TOKENS)
    try:
        return asked.complete([{"role": "user", "content": prompt}])
    finally:
        asked.close()
