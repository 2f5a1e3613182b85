"""What started what: threads, submissions, waits, streams and their items, as one graph of columns."""
