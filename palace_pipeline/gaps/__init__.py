"""Source against archive: is every conversation of the export folders, whole, in every store?"""

from palace_pipeline.gaps.compare import Evicted, Files, Gap
from palace_pipeline.gaps.look import Look, look, window
from palace_pipeline.gaps.mark import mark
from palace_pipeline.gaps.sides import Days, look_at_days

__all__ = ["Days", "Evicted", "Files", "Gap", "Look", "look", "look_at_days", "mark", "window"]
