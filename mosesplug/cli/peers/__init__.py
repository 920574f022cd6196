"""Programs with the names and command lines of other toolkits' tuning programs."""
