"""Sensors: export folders, days with work, gaps, runs that failed."""

from sensors.days import planned_days
from sensors.exports import export_folders
from sensors.failures import run_failures
from sensors.gaps import gaps

SENSORS = [export_folders, planned_days, gaps, run_failures]
