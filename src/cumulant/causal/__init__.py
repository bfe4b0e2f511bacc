"""Cause-effect models, interventions, and how fast each direction adapts to a change (Le Priol 2023, chapter 4)."""
