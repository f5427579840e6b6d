"""A transformer by hand: the worked example, every number of it open to change."""

from pages.learn.worked.chapters import show_worked_example

show_worked_example()
