"""What Moses' own tuning programs compute, for the launchers that stand in for them."""
