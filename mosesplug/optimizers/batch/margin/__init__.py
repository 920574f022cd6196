"""Large margins and regression over all lists at once, by convex solvers."""
