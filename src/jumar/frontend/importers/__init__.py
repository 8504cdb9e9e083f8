"""Importers: one folder for each foreign format."""
