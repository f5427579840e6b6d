"""The effect of four position schemes on attention."""

from pages.inside.positions.positions import show_positions

show_positions()
