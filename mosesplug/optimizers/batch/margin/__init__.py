"""Large margins and regression over all lists at once: convex problems, one or a few in turn."""
