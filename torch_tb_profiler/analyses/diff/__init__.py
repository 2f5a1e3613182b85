"""Two traces aligned by structure."""
