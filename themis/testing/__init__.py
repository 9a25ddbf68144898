"""Evaluations as tests: the plugin that pytest finds by itself wherever Themis is installed."""
