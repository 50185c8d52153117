"""Where handlers run: one small port, and one module for each way of running."""
