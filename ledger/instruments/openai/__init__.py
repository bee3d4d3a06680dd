"""Instruments that speak the OpenAI-style chat completions API."""
