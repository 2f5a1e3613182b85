"""The page, driven in Chromium."""
