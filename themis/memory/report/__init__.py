"""Memory runs as people read them: pages, figures and tables."""
