"""Helpers of the project."""
