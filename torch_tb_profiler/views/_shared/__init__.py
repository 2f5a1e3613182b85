"""What several views build on."""
