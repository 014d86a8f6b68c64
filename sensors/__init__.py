"""Sensors: export folders, days with work."""

from sensors.exports import export_folders, planned_days

SENSORS = [export_folders, planned_days]
