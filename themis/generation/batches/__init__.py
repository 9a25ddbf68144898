"""Calls that a provider takes together, answers within a day and charges less for."""
