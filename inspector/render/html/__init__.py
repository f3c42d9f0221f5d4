"""Reports, comparisons, diffs and the results of checks as one HTML file each, which needs nothing from elsewhere."""

from .comparison import comparison_page, diff_page, verdicts_page
from .report import report_fragment, report_page

__all__ = ["comparison_page", "diff_page", "report_fragment", "report_page", "verdicts_page"]
