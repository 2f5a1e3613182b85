"""How close the devices come to their peaks: attainable time, what bounds it, utilization."""
