"""Pictures in one house style: `figure` and `save`, and the few shapes that statistics needs again and again.

matplotlib is loaded when the first picture is drawn. No global setting of it is read or changed, no window is opened:
the figures are plain `matplotlib.figure.Figure` objects, which a notebook shows and `save` writes.
"""

from cumulant.plotting.goodness import goodness_of_fit
from cumulant.plotting.shapes import band, density, interval
from cumulant.plotting.style import COLOURS, figure, legend, save

__all__ = ["COLOURS", "band", "density", "figure", "goodness_of_fit", "interval", "legend", "save"]
